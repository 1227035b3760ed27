"""Compilation of pyspiel games into arrays."""

from typing import TYPE_CHECKING

from spiel_cfrplus._utils.lazy_modules import modules_on_first_use

if TYPE_CHECKING:
    from spiel_cfrplus.game import action_names as action_names
    from spiel_cfrplus.game import chance as chance
    from spiel_cfrplus.game import chance_normalization as chance_normalization
    from spiel_cfrplus.game import checks as checks
    from spiel_cfrplus.game import efg as efg
    from spiel_cfrplus.game import game_tree as game_tree
    from spiel_cfrplus.game import named_games as named_games
    from spiel_cfrplus.game import native_library as native_library
    from spiel_cfrplus.game import native_walk as native_walk
    from spiel_cfrplus.game import parallel_walk as parallel_walk
    from spiel_cfrplus.game import payoffs as payoffs
    from spiel_cfrplus.game import portable_games as portable_games
    from spiel_cfrplus.game import recall as recall
    from spiel_cfrplus.game import replayed_states as replayed_states
    from spiel_cfrplus.game import saved_games as saved_games
    from spiel_cfrplus.game import sequence_form as sequence_form
    from spiel_cfrplus.game import size_estimate as size_estimate
    from spiel_cfrplus.game import subgames as subgames
    from spiel_cfrplus.game import treeplex as treeplex
    from spiel_cfrplus.game import trial as trial
    from spiel_cfrplus.game import turn_based as turn_based
    from spiel_cfrplus.game import walk as walk
    from spiel_cfrplus.game import walk_cache as walk_cache
    from spiel_cfrplus.game import walk_choice as walk_choice
    from spiel_cfrplus.game import walk_limits as walk_limits
else:
    __getattr__, __dir__ = modules_on_first_use(__name__, __path__)
