"""Drop-in replacements for the CFR modules of `open_spiel.python.algorithms`: `cfr`, `discounted_cfr`, `cfr_br`."""
