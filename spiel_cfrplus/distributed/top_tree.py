"""The top tree: the game above a cut, in sequence form. Each process walks it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyspiel

from spiel_cfrplus._utils.arrays import Immutable, frozen
from spiel_cfrplus.distributed.cut import Cut
from spiel_cfrplus.game.chance_normalization import normalized
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.subgames import History
from spiel_cfrplus.game.walk import TreeWalk
from spiel_cfrplus.game.walk_limits import NO_LIMITS, WalkLimits
from spiel_cfrplus.kernels import tree as tree_kernels


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TopTree(Immutable):
    """The game above a cut with k histories; n players.

    Attributes:
      game: the histories above the cut, and those at the cut as terminal histories with returns 0.
      histories: k histories at the cut, in preorder.
      leaves: int64 (k,), their numbers in the tree of `game`, ascending.
      part, component: int64 (k,), the part and the component of each of them.
      boundary: int32 (k, n), the last sequence of each player at each of them, in the player's treeplex of `game`.
      chance_reach: float64 (k,), the product of the chance probabilities on the path to each of them.
    """

    game: SequenceFormGame
    histories: tuple[History, ...]
    leaves: np.ndarray
    part: np.ndarray
    component: np.ndarray
    boundary: np.ndarray
    chance_reach: np.ndarray

    def _summary(self) -> str:
        return f"{self.game.tree.game}, {self.game.tree.num_histories} histories, {len(self.histories)} of them at the cut"

    @property
    def num_parts(self) -> int:
        return int(self.part.max()) + 1

    def boundary_sequences(self, part: int, player: int) -> np.ndarray:
        """int32, the boundary sequences of a player in a part, ascending."""
        return np.unique(self.boundary[self.part == part, player])


def walk_top_tree(game: pyspiel.Game, cut: Cut, limits: WalkLimits = NO_LIMITS) -> TopTree:
    """Walks the game to the cut.

    Raises:
      MemoryError, TimeoutError, ValueError: see `GameTree.from_game` and `SequenceFormGame.from_tree`.
    """
    walk, place_of = TreeWalk(game, limits), {history: place for place, history in enumerate(cut.histories)}
    histories: list[History] = []
    at_cut = []
    above = [game.new_initial_state()]
    while above:
        state = above.pop()
        history = tuple(state.history())
        if history in place_of:
            at_cut.append(walk.num_histories)
            histories.append(history)
            walk.visit_cut()
        else:
            above += [state.child(action) for action in walk.visit(state)]
    tree = normalized(GameTree.from_record(game, ((),), walk.record()))
    last_sequence, _ = trace_sequences(tree)
    reach = np.empty(tree.num_histories)
    tree_kernels.chance_reach(tree.parent, tree.chance_probability, reach)
    places = [place_of[history] for history in histories]
    return TopTree(
        game=SequenceFormGame.from_tree(tree),
        histories=tuple(histories),
        leaves=frozen(at_cut, np.int64),
        part=frozen(cut.part[places], np.int64),
        component=frozen(cut.component[places], np.int64),
        boundary=frozen(last_sequence[at_cut], np.int32),
        chance_reach=frozen(reach[at_cut], np.float64),
    )
