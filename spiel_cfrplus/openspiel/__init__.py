"""Drop-in replacements for the CFR modules of `open_spiel.python.algorithms`: `cfr`, `discounted_cfr`, `cfr_br`."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.openspiel import cfr as cfr
    from spiel_cfrplus.openspiel import cfr_br as cfr_br
    from spiel_cfrplus.openspiel import discounted_cfr as discounted_cfr
    from spiel_cfrplus.openspiel import exploitability as exploitability
    from spiel_cfrplus.openspiel import histories as histories
    from spiel_cfrplus.openspiel import kept_trees as kept_trees
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
