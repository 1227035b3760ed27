"""Play: bots that play a profile, and matches between policies and bots."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.play import bots as bots
    from spiel_cfrplus.play import match as match
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
