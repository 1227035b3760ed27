"""What is measured along a run, and how it is shown."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.analysis import checkpointed_run as checkpointed_run
    from spiel_cfrplus.analysis import convergence as convergence
    from spiel_cfrplus.analysis import crosscheck as crosscheck
    from spiel_cfrplus.analysis import infostate_table as infostate_table
    from spiel_cfrplus.analysis import monotone_updates as monotone_updates
    from spiel_cfrplus.analysis import plotting as plotting
    from spiel_cfrplus.analysis import row_files as row_files
    from spiel_cfrplus.analysis import solver_table as solver_table
    from spiel_cfrplus.analysis import theory as theory
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
