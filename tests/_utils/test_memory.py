"""Available memory under the limits of the address space and of containers."""

import pytest

from spiel_cfrplus._utils import memory


def test_available_memory_respects_the_address_space_limit(monkeypatch):
    resource = pytest.importorskip("resource")
    used = memory.psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (used + 10**6, -1) if kind == resource.RLIMIT_AS else None)
    assert 0 <= memory.available_bytes() <= 10**6


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/", {"memory.max": "5000", "memory.current": "2000"}, 3000),  # version 2, in a container
        ("0::/a/b", {"a/memory.max": "500", "a/memory.current": "100", "a/b/memory.max": "max"}, 400),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "90", "memory/a/memory.usage_in_bytes": "60"}, 30),  # version 1
        ("4:cpu,memory:/a", {"memory/memory.limit_in_bytes": "90", "memory/memory.usage_in_bytes": "50"}, 40),
        ("0::/", {"memory.max": "100", "memory.current": "120"}, 0),
        ("0::/", {"memory.max": "max", "memory.current": "120"}, None),
        ("3:cpu:/a", {"memory/a/memory.limit_in_bytes": "90", "memory/a/memory.usage_in_bytes": "60"}, None),
        ("", {}, None),
    ],
)
def test_available_memory_respects_the_limits_of_containers(own, files, expected, monkeypatch, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path)
    unlimited = 10**15
    monkeypatch.setattr(memory, "_free_on_machine", lambda: [unlimited])
    monkeypatch.setattr(memory, "_free_in_address_space", lambda: [])
    assert memory.available_bytes() == (unlimited if expected is None else expected)
