"""Drop-in replacements for the CFR modules of `open_spiel.python.algorithms`: `cfr`, `discounted_cfr`, `cfr_br`."""

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

__getattr__, __dir__ = modules_on_first_use(__name__, __path__)
