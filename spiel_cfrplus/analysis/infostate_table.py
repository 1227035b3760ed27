"""Tables of what a profile plays at each infostate and what each action is worth there.

Terms, for player p, infostate I and action a, under the profile:

* The *own reach* of I is the product of p's own action probabilities on the path to I.
* The *counterfactual reach* of I is the sum over its histories h of pi(h), the product of the probabilities of chance and the
  others on the path to h. Own reach times counterfactual reach is the probability that play reaches I.
* The *belief* at I is the probability of each history given that play reaches I: pi(h) / counterfactual reach.
* The *expected value* of a is p's expected utility if it is at I, with this belief, plays a there, and all follow the profile
  afterwards. It is not defined (NaN) if the counterfactual reach is zero.
* The *regret* of a is that of CFR: its counterfactual value (expected value times counterfactual reach) minus the mean of the
  counterfactual values under p's own probabilities. A profile is an equilibrium only if no action at an infostate with positive
  own reach has a positive regret.

All values are in game units.

>>> import pyspiel
>>> from spiel_cfrplus import StrategyProfile, compile_game
>>> table = infostate_table(StrategyProfile.uniform(compile_game(pyspiel.load_game("kuhn_poker"))))
>>> print(table.of_infostate(1, "1b"))
player  infostate  action  action_name  probability  own_reach  counterfactual_reach  expected_value    regret
     1  1b              0  Pass                 0.5          1                0.1667              -1  -0.08333
     1  1b              1  Bet                  0.5          1                0.1667               0   0.08333
>>> print(table.beliefs().of_infostate(1, "1b"))
player  infostate  history  probability
     1  1b         0, 1, 1          0.5
     1  1b         2, 1, 1          0.5

The columns are arrays of one length: `pandas.DataFrame(table.columns)`.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.game.action_names import action_names
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.kernels import passes
from spiel_cfrplus.kernels import tree as tree_kernels
from spiel_cfrplus.policies.profile import StrategyProfile, checked_profile

_MAX_ROWS = 60
_MAX_WIDTH = 40


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Columns of one length, of which two are `player` and `infostate`; prints as text, and in notebooks as HTML.

    Attributes:
      columns: arrays by name, read-only; strings are Python objects.
    """

    columns: Mapping[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self["player"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows of {', '.join(self.columns)})"

    def rows(self, chosen: np.ndarray) -> Self:
        """The table of some rows.

        Args:
          chosen: a mask or indices.
        """
        columns = {name: _sealed(column[chosen]) for name, column in self.columns.items()}
        return dataclasses.replace(self, columns=columns)

    def of_infostate(self, player: int, infostate: str) -> Self:
        """The rows of an infostate.

        Raises:
          KeyError: the player has no such infostate.
        """
        result = self.rows((self["player"] == player) & (self["infostate"] == infostate))
        if len(result) == 0:
            raise KeyError(f"player {player} has no infostate {infostate!r} in this table")
        return result

    def _shown(self) -> Self:
        """The rows that are printed."""
        return self.rows(np.arange(min(_MAX_ROWS, len(self))))

    def _note(self, shown: Table) -> str:
        """What is printed below the rows; empty if all are shown."""
        return f"({len(shown)} of {len(self)} rows)" if len(shown) < len(self) else ""

    def text(self, names: Iterable[str] | None = None) -> str:
        """All rows as lines, where `str` omits rows of large tables; all columns, or those in `names`."""
        names = self.columns if names is None else names
        cells = {name: [name, *map(_text, self[name].tolist())] for name in names}
        adjusted = [_adjusted(texts, self[name].dtype == object) for name, texts in cells.items()]
        return "\n".join("  ".join(line).rstrip() for line in zip(*adjusted, strict=True))

    def __str__(self) -> str:
        shown = self._shown()
        return "\n".join(filter(None, [shown.text(), self._note(shown)]))

    def _repr_html_(self) -> str:
        shown = self._shown()
        rows = zip(*(column.tolist() for column in shown.columns.values()), strict=True)
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown.columns)
        note = f"<p>{html.escape(self._note(shown))}</p>" if self._note(shown) else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class InfostateTable(Table):
    """A row for each action at each infostate, by player, infostates in the order of the walk, actions in legal order.

    Attributes:
      columns: `player`, `infostate` (string), `action` (id), `action_name`, `probability`, `own_reach`,
        `counterfactual_reach`, `expected_value`, `regret`.
      profile: the profile.
    """

    profile: StrategyProfile

    def top(self, num_infostates: int) -> InfostateTable:
        """The infostates that play reaches with the largest probabilities, in the order of the table.

        Raises:
          TypeError, ValueError: not a number of infostates.
        """
        is_first = np.ones(len(self), bool)
        is_first[1:] = (self["infostate"][1:] != self["infostate"][:-1]) | (self["player"][1:] != self["player"][:-1])
        number = np.cumsum(is_first) - 1
        reach = (self["own_reach"] * self["counterfactual_reach"])[is_first]
        most = np.argsort(-reach, kind="stable")[: checked_count(num_infostates)]
        return self.rows(np.isin(number, most))

    def beliefs(self) -> Table:
        """A row for each history of each infostate: `player`, `infostate`, `history` (action ids), `probability`."""
        game = self.profile.game
        parts = []
        for player, own in enumerate(_counterfactual_reach(self.profile)):
            with np.errstate(invalid="ignore", divide="ignore"):
                probability = own.of_history / own.of_point[own.point]
            order = np.argsort(own.point, kind="stable")
            keys = np.array(game.treeplexes[player].infostate_keys, object)
            texts = [", ".join(map(str, game.tree.history_actions(history))) for history in own.history[order].tolist()]
            parts.append(
                {
                    "player": np.full(len(order), player),
                    "infostate": keys[own.point[order]],
                    "history": np.array(texts, object),
                    "probability": probability[order],
                }
            )
        return Table(joined(parts))

    def _shown(self) -> InfostateTable:
        return self if len(self) <= _MAX_ROWS else self.top(_MAX_ROWS // 3)

    def _note(self, shown: Table) -> str:
        note = super()._note(shown)
        return f"{note[:-1]}, the infostates reached most often)" if note else ""


def infostate_table(profile: StrategyProfile) -> InfostateTable:
    """The table of a profile.

    Time and memory are those of a pass over the histories of the game; names of actions take most of the time, because they
    require the states of OpenSpiel.

    Args:
      profile: of a game, a subgame or a game with locked infostates; `read_policy` converts OpenSpiel's policies.

    Raises:
      TypeError: not a `StrategyProfile`.
    """
    game, values = checked_profile(profile).game, _counterfactual_values(profile)
    parts = []
    for player, (others, labels) in enumerate(zip(_counterfactual_reach(profile), action_labels(game), strict=True)):
        treeplex, own = game.treeplexes[player], game.player_slices[player]
        point = treeplex.decision_point_of[1:]
        probability, value = profile.of_player(player)[1:], values[own][1:]
        mean = np.bincount(point, probability * value, treeplex.num_decision_points)
        reach = others.of_point[point]
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.where(reach > 0, value / reach, np.nan)
        parts.append(
            {
                **labels,
                "probability": probability,
                "own_reach": profile.sequence_form(player)[treeplex.parent_sequence[point]],
                "counterfactual_reach": reach,
                "expected_value": expected,
                "regret": value - mean[point],
            }
        )
    return InfostateTable(joined(parts), profile)


def action_labels(game: SequenceFormGame) -> Iterator[dict[str, np.ndarray]]:
    """The columns `player`, `infostate`, `action` and `action_name` of each player; a row for each action of each infostate."""
    names = np.array(names_of_actions(game), object)
    owner_of_name = np.repeat(game.tree.infostate_player, np.diff(game.tree.legal_action_start))
    for player, treeplex in enumerate(game.treeplexes):
        point = treeplex.decision_point_of[1:]
        yield {
            "player": np.full(len(point), player),
            "infostate": np.array(treeplex.infostate_keys, object)[point],
            "action": treeplex.actions[1:],
            "action_name": names[owner_of_name == player],
        }


def _counterfactual_values(profile: StrategyProfile) -> np.ndarray:
    """float64 (S,), the counterfactual value of each sequence, of all players."""
    game = profile.game
    policy = profile.probabilities.copy()  # kernels are compiled for writable arrays only
    reach, values = np.empty(game.num_sequences), np.empty(game.num_sequences)
    passes.strategies_of_policy(game.treeplex_arrays, policy, reach)
    for player in range(game.num_players):
        passes.payoff_gradient(game.treeplex_arrays, game.payoff_arrays, player, reach, values)
        passes.counterfactual_values(game.treeplex_arrays, player, policy, values)
    return values


@dataclasses.dataclass(frozen=True, eq=False)
class _Reach:
    """The counterfactual reach of a player's histories and decision points.

    Attributes:
      history: int64 (K,), the player's K decision histories, ascending.
      point: int64 (K,), the decision point of each.
      of_history: float64 (K,).
      of_point: float64 (J,), the sums.
    """

    history: np.ndarray
    point: np.ndarray
    of_history: np.ndarray
    of_point: np.ndarray


def _counterfactual_reach(profile: StrategyProfile) -> Iterator[_Reach]:
    tree = profile.game.tree
    last_sequence, _ = trace_sequences(tree)
    chance = _chance_reach(tree)
    strategies = [profile.sequence_form(player) for player in range(tree.num_players)]
    for player, treeplex in enumerate(profile.game.treeplexes):
        history = np.flatnonzero(tree.actor == player)
        point = (np.cumsum(tree.infostate_player == player) - 1)[tree.infostate[history]]
        reach = chance[history]
        for other, strategy in enumerate(strategies):
            if other != player:
                reach *= strategy[last_sequence[history, other]]
        yield _Reach(history, point, reach, np.bincount(point, reach, treeplex.num_decision_points))


def history_reach(profile: StrategyProfile) -> np.ndarray:
    """float64 (H,), the probability that play under the profile reaches each history."""
    last_sequence, _ = trace_sequences(profile.game.tree)
    reach = _chance_reach(profile.game.tree)
    for player, sequence in enumerate(last_sequence.T):
        reach *= profile.sequence_form(player)[sequence]
    return reach


def _chance_reach(tree: GameTree) -> np.ndarray:
    reach = np.empty(tree.num_histories)
    tree_kernels.chance_reach(tree.parent, tree.chance_probability, reach)
    return reach


def names_of_actions(game: SequenceFormGame) -> tuple[str, ...]:
    """`action_names` of the tree, computed once for each game."""
    return game.derived(_action_names)


def _action_names(game: SequenceFormGame) -> tuple[str, ...]:
    return action_names(game.tree)


def joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The columns of the players' parts, one below the other, read-only."""
    return {name: _sealed(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def _sealed(column: np.ndarray) -> np.ndarray:
    return frozen(column, column.dtype)


def _text(value: Any) -> str:
    """A cell on one line; long strings lose their middle."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    half = _MAX_WIDTH // 2
    return text if len(text) <= _MAX_WIDTH else f"{text[: half - 2]}...{text[1 - half :]}"


def _adjusted(texts: list[str], left: bool) -> list[str]:
    width = max(map(len, texts))
    return [text.ljust(width) if left else text.rjust(width) for text in texts]


def _html_cell(value: Any) -> str:
    align = "left" if isinstance(value, str) else "right"
    return f'<td style="text-align: {align}">{html.escape(_text(value))}</td>'
