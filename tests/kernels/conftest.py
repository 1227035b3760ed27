"""A cache of compiled kernels for each test that uses the fixture."""

import pytest

from spiel_cfrplus.kernels import compiled_files, kernel_cache
from spiel_cfrplus.kernels.compiled_files import VARIABLE, KernelFiles


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache for kernels of `renewed`; its directory does not exist yet."""
    root = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(root))
    monkeypatch.setattr(compiled_files, "_has_reported", False)
    monkeypatch.setattr(kernel_cache, "kernel_files", KernelFiles)
    return root
