"""Compilation of pyspiel games into arrays."""

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

__getattr__, __dir__ = modules_on_first_use(__name__, __path__)
