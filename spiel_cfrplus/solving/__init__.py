"""Sessions that iterate, and the solvers made of them."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.solving import algorithms as algorithms
    from spiel_cfrplus.solving import averaging as averaging
    from spiel_cfrplus.solving import best_response_play as best_response_play
    from spiel_cfrplus.solving import checkpoint as checkpoint
    from spiel_cfrplus.solving import compiled_self_play as compiled_self_play
    from spiel_cfrplus.solving import curve as curve
    from spiel_cfrplus.solving import exact as exact
    from spiel_cfrplus.solving import partition as partition
    from spiel_cfrplus.solving import play_recorder as play_recorder
    from spiel_cfrplus.solving import rational_value as rational_value
    from spiel_cfrplus.solving import restricted_nash_response as restricted_nash_response
    from spiel_cfrplus.solving import self_play as self_play
    from spiel_cfrplus.solving import session as session
    from spiel_cfrplus.solving import solvers as solvers
    from spiel_cfrplus.solving import symmetry as symmetry
    from spiel_cfrplus.solving import threads as threads
    from spiel_cfrplus.solving import warm_start as warm_start
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
