"""Sweeps: many runs, of games times algorithms times options, in parallel, whose results are one table."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.sweeps import engines as engines
    from spiel_cfrplus.sweeps import plans as plans
    from spiel_cfrplus.sweeps import runs as runs
    from spiel_cfrplus.sweeps import sweep as sweep
    from spiel_cfrplus.sweeps import tables as tables
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
