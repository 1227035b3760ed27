"""Conversion of OpenSpiel policies and dictionaries into `StrategyProfile`s, with validation.

Tables (`TabularPolicy`, `pyspiel.TabularPolicy`, dictionaries) are read once per infostate. Any other policy is a function of
states: it is called at the first history of each infostate. It must return the same distribution at all histories of an
infostate, which is checked at a random sample of them, or at all.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyspiel

from spiel_cfrplus._utils.archives import shortened
from spiel_cfrplus._utils.progress import Advance, progress_bar
from spiel_cfrplus.game import turn_based
from spiel_cfrplus.game.chance import at
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.subgames import checked_roots, moves
from spiel_cfrplus.policies import files
from spiel_cfrplus.policies.profile import PROBABILITY_TOLERANCE, StrategyProfile

if TYPE_CHECKING:
    from open_spiel.python import policy as openspiel_policy

Check = Literal["sample", "all"]
SAMPLE_SIZE = 1000
"""The number of additional histories of each player at which a function is called by default."""


def read_policy(
    game: pyspiel.Game | SequenceFormGame, policy: Any, *, check: Check = "sample", seed: int = 0, progress: bool = False
) -> StrategyProfile:
    """Converts `policy` into a profile of `game`.

    Args:
      game: a game, or a compiled game, which avoids the walk.
      policy: a `StrategyProfile`; a `TabularPolicy` or any other `open_spiel.python.policy.Policy`; a `pyspiel.Policy`; a
        dictionary from information-state strings to {action: probability} or (action, probability) pairs; or a list of
        these, one for each player, each used only at its player's infostates. Tables and dictionaries may also be those of the
        simultaneous-move game of which `game` is the turn-based form. For a subgame or a game with locked infostates, a
        table or dictionary may contain additional infostates, for example those of the whole game; for a whole game it may not.
      check: where a policy that is not a table must agree with what it returns at the first history of the infostate. "sample":
        at `SAMPLE_SIZE` other histories of each player, or at all if there are fewer; "all": at all histories, as OpenSpiel's
        evaluators call it.
      seed: of the sample.
      progress: show a progress bar on standard error while a policy is called, if that is a terminal.

    Raises:
      TypeError: not a policy, or not a game.
      ValueError: `check` is neither "sample" nor "all".
      ValueError: a profile or a table of another game; the wrong number of policies; an infostate is missing; its value is not
        a distribution, see `StrategyProfile`, or contains illegal actions; or it differs between two of the
        histories where this is checked.
    """
    checked_check(check)
    game = compile_game(game)
    if isinstance(policy, StrategyProfile):
        if policy.game is game:
            return policy
        if policy.game.fingerprint != game.fingerprint:
            raise ValueError(
                f"this profile belongs to another game, {policy.game.description}, not to {game.description}: their "
                "infostates, actions or payoffs differ"
            )
        return StrategyProfile(game, policy.probabilities)
    per_player = policy if isinstance(policy, Sequence) and not isinstance(policy, str) else [policy] * game.num_players
    if len(per_player) != game.num_players:
        raise ValueError(_wrong_number_of_policies(game, len(per_player)))
    with progress_bar(progress, unit="calls") as advance:
        calls = _Calls(check, seed, advance)
        parts = [_read_player(game, player, player_policy, calls) for player, player_policy in enumerate(per_player)]
    return StrategyProfile(game, np.concatenate(parts))


def load_policy(
    path: str | os.PathLike[str],
    game: pyspiel.Game | SequenceFormGame | None = None,
    *,
    max_histories: int | None = None,
) -> StrategyProfile:
    """Reads what `StrategyProfile.save` wrote, or the folder of a distributed solver.

    Args:
      path: a file whose name ends in `.npz`, `.json` or `.csv`; or a folder, see `folders`.
      game: the game of the policy, or the compiled game, which avoids the walk. By default the game that `pyspiel.load_game`
        makes of the saved string. It must be given for a `.csv` file; for a subgame and for a game with locked infostates;
        and for matrix games, `.efg` games, unregistered Python games, and games that are read from files.
      max_histories: refuse games with more histories than this.

    Raises:
      OSError: the file cannot be read.
      TypeError: `path` is no path, or `game` no game.
      ValueError: the file is damaged or no such file, or was saved for another game; or the game must be given.

    >>> import pathlib, tempfile
    >>> from spiel_cfrplus import CFRPlusSolver
    >>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
    >>> solver.run(100)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory, "kuhn.npz")
    ...     solver.average_profile().save(path)
    ...     profile = load_policy(path)
    >>> bool((profile.probabilities == solver.average_profile().probabilities).all())
    True
    """
    compiled, probabilities = files.read(path, game, max_histories)
    try:
        return StrategyProfile(compiled, probabilities)
    except ValueError as error:
        raise files.damaged(path, shortened(str(error))) from error


def checked_check(check: Any) -> None:
    """Checks the argument.

    Raises:
      ValueError: neither "sample" nor "all".
    """
    if check not in ("sample", "all"):
        raise ValueError(f"expected check='sample' or check='all', got {check!r}")


@dataclasses.dataclass(frozen=True)
class _Calls:
    """How a policy that is a function is called; see `read_policy`."""

    check: Check
    seed: int
    advance: Advance


def histories_to_call(tree: GameTree, player: int, check: Check = "sample", seed: int = 0) -> np.ndarray:
    """int64, ascending: the first history of each infostate of the player, and a sample of the others, or all of them."""
    histories = np.flatnonzero(tree.actor == player)
    if check == "all":
        return histories
    first = tree.first_history[tree.infostate_player == player]
    others = np.setdiff1d(histories, first, assume_unique=True)
    if len(others) > SAMPLE_SIZE:
        others = np.random.default_rng((seed, player)).choice(others, SAMPLE_SIZE, replace=False)
    return np.union1d(first, others)


def _read_player(game: SequenceFormGame, player: int, policy: Any, calls: _Calls) -> np.ndarray:
    """The behavioral policy of one player, float64 (S_p,)."""
    from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

    if isinstance(policy, StrategyProfile):
        return read_policy(game, policy).of_player(player)
    if is_plain_table(policy):
        return _read_rows(game, player, policy)
    if isinstance(policy, pyspiel.TabularPolicy):
        policy = policy.policy_table()
    if isinstance(policy, Mapping):
        return _read_mapping(game, player, _turn_based_keys(game, policy))
    if isinstance(policy, pyspiel.Policy):
        return _call(game, player, lambda state: policy.action_probabilities(state), calls)
    if isinstance(policy, openspiel_policy.Policy):
        return _call(game, player, lambda state: policy.action_probabilities(state, player), calls)
    raise TypeError(
        f"{game.tree.game}: expected a StrategyProfile, an OpenSpiel policy, a dictionary, or a list of one of these per "
        f"player; got {policy!r} for player {player}"
    )


def is_plain_table(policy: Any) -> bool:
    """Whether it is a `TabularPolicy` and the array determines it: a subclass or an object may override the lookup methods."""
    from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

    plain = openspiel_policy.TabularPolicy
    if not isinstance(policy, plain):
        return False
    methods = ("action_probabilities", "policy_for_key", "_state_key")
    return all(getattr(type(policy), name) is getattr(plain, name) and name not in vars(policy) for name in methods)


def _read_rows(game: SequenceFormGame, player: int, policy: openspiel_policy.TabularPolicy) -> np.ndarray:
    treeplex = game.treeplexes[player]
    _check_num_players(game.tree.game, policy)
    has_infostates = policy.game_type.provides_information_state_string
    keys = treeplex.infostate_keys if has_infostates else _table_keys(game, player, policy)
    row_of = _turn_based_keys(game, policy.state_lookup)
    try:
        rows = np.array([row_of[key] for key in keys], np.int64)
    except KeyError as error:
        raise ValueError(_missing(game, player, error.args[0])) from error
    if has_infostates:
        _check_no_additional_infostates(game, row_of)
    table = np.asarray(policy.action_probability_array, np.float64)
    size = (int(rows.max(initial=-1)) + 1, int(treeplex.actions.max()) + 1)
    if table.ndim != 2 or table.shape[0] < size[0] or table.shape[1] < size[1]:
        raise ValueError(
            f"{game.tree.game}: the policy's table has shape {table.shape}, but player {player} requires at least {size}"
        )
    points, actions = treeplex.decision_point_of[1:], treeplex.actions[1:]
    illegal = np.array(table[rows])
    illegal[points, actions] = 0
    bad_points, bad_actions = np.nonzero(illegal)
    if len(bad_points):
        point, action = int(bad_points[0]), int(bad_actions[0])
        raise ValueError(_illegal(game, player, point, action, illegal[point, action]))
    return np.concatenate([[1.0], table[rows[points], actions]])


def _check_num_players(game: pyspiel.Game, policy: openspiel_policy.TabularPolicy) -> None:
    if len(policy.states_per_player) != game.num_players():
        raise ValueError(
            f"{game} has {game.num_players()} players, but the policy's table is for a game with "
            f"{len(policy.states_per_player)} players; pass a policy of this game"
        )


def _table_keys(game: SequenceFormGame, player: int, policy: openspiel_policy.TabularPolicy) -> list[str]:
    """The table's keys of the player's infostates, for tables that are not keyed by information-state strings."""
    tree = game.tree
    infostates = np.flatnonzero(tree.infostate_player == player)
    histories = tree.first_history[infostates]
    return [policy._state_key(state, player) for _, state in tree.states(histories)]


def _turn_based_keys(game: SequenceFormGame, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table of a simultaneous-move game with the keys of its turn-based form; other tables as they are.

    Players who share a string in the simultaneous-move game get the same entry, as from OpenSpiel's lookup.
    """
    if not turn_based.is_turn_based_form(game.tree.game):
        return table
    renamed, replaced = {}, set()
    for treeplex in game.treeplexes:
        prefix = turn_based.infostate_prefix(treeplex.player)
        for key in treeplex.infostate_keys:
            short = key.removeprefix(prefix)
            if key not in table and short in table:
                renamed[key] = table[short]
                replaced.add(short)
    return {**{key: entry for key, entry in table.items() if key not in replaced}, **renamed} if renamed else table


def _read_mapping(game: SequenceFormGame, player: int, policy: Mapping[str, Any]) -> np.ndarray:
    treeplex = game.treeplexes[player]
    probabilities = np.ones(treeplex.num_sequences)
    for point, key in enumerate(treeplex.infostate_keys):
        if key not in policy:
            raise ValueError(_missing(game, player, key))
        write_distribution(game, player, point, policy[key], probabilities)
    _check_no_additional_infostates(game, policy)
    return probabilities


def _check_no_additional_infostates(game: SequenceFormGame, keys: Iterable[str]) -> None:
    """Checks that a table for a whole game contains no other infostates, because such a table belongs to another game.

    Raises:
      ValueError: it contains other infostates.
    """
    if not game.is_whole_game:
        return
    additional = [key for key in keys if not any(key in treeplex.decision_point_at for treeplex in game.treeplexes)]
    if additional:
        raise ValueError(
            f"{game.tree.game}: the policy belongs to another game: it contains {len(additional)} infostates that this game "
            f"does not have, such as {additional[0]!r}; pass a policy of this game, or omit these infostates"
        )


def _call(game: SequenceFormGame, player: int, policy: Callable[[pyspiel.State], Any], calls: _Calls) -> np.ndarray:
    tree, treeplex = game.tree, game.treeplexes[player]
    keys = treeplex.infostate_keys
    point_of_infostate = np.cumsum(tree.infostate_player == player) - 1
    probabilities = np.ones(treeplex.num_sequences)
    first_history: dict[int, int] = {}
    for history, state in tree.states(histories_to_call(tree, player, calls.check, calls.seed)):
        calls.advance(1)
        point = int(point_of_infostate[tree.infostate[history]])
        try:
            distribution = policy(state)
        except (KeyError, pyspiel.SpielError) as error:
            raise ValueError(f"{_missing(game, player, keys[point])} ({error!r})") from error
        own = slice(*treeplex.sequence_start[point : point + 2])
        before = probabilities[own].copy()
        write_distribution(game, player, point, distribution, probabilities)
        if point in first_history and not np.allclose(
            before, probabilities[own], rtol=0, atol=PROBABILITY_TOLERANCE, equal_nan=True
        ):
            raise ValueError(
                f"{tree.game}: the policy of player {player} is not a function of the infostate: at infostate {keys[point]!r} "
                f"it plays {before.tolist()} after history {list(tree.history_actions(first_history[point]))} and "
                f"{probabilities[own].tolist()} after {list(tree.history_actions(history))}"
            )
        first_history.setdefault(point, history)
    return probabilities


def write_distribution(game: SequenceFormGame, player: int, point: int, distribution: Any, probabilities: np.ndarray) -> None:
    """Writes the distribution at a decision point into the player's `probabilities`; omitted legal actions get probability 0.

    Raises:
      ValueError: not probabilities by action, a duplicate action, or an illegal one. Sum and signs are not checked.
    """
    treeplex = game.treeplexes[player]
    sequences = treeplex.sequences(point)
    key = treeplex.infostate_keys[point]
    legal = [int(action) for action in treeplex.actions[sequences.start : sequences.stop]]
    try:
        pairs = list(distribution.items() if isinstance(distribution, Mapping) else distribution)
        by_action = {action: float(probability) for action, probability in pairs}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{game.tree.game}: the policy of player {player} at infostate {key!r} is {distribution!r}, not probabilities by "
            "action"
        ) from error
    if len(by_action) < len(pairs):
        raise ValueError(f"{game.tree.game}: {distribution!r} at infostate {key!r} contains an action twice")
    for action, probability in by_action.items():
        if action not in legal and probability != 0:
            raise ValueError(_illegal(game, player, point, action, probability))
    probabilities[sequences.start : sequences.stop] = [by_action.get(action, 0.0) for action in legal]


def players_reach(
    states: pyspiel.State | Sequence[pyspiel.State], policy: StrategyProfile | openspiel_policy.Policy | pyspiel.Policy
) -> npt.NDArray[np.float64]:
    """Each player's reach of each state under `policy`, float64 (k, n); an argument of `compile_subgame`.

    Args:
      states: one or k states of a game.
      policy: a `StrategyProfile` or an OpenSpiel policy; it is evaluated only on the paths to the states, so the whole game
        may be too large to compile.

    Raises:
      TypeError: not such a policy.
      TypeError, ValueError: invalid states, see `checked_roots`.
      ValueError: a profile of another game, or a `TabularPolicy` of a game with a different number of players; or, on a path,
        the policy returns nothing, or not a distribution over the legal actions.
    """
    if not callable(getattr(policy, "action_probabilities", None)):
        raise TypeError(f"expected a StrategyProfile or an OpenSpiel policy, got {policy!r}; see read_policy")
    game, roots = checked_roots(states)
    _check_belongs(policy, game)
    reach = np.ones((len(roots), game.num_players()))
    for row, history in enumerate(roots):
        for state, action in moves(game, history):
            if not state.is_chance_node():
                reach[row, state.current_player()] *= _distribution_at(state, policy).get(action, 0.0)
    return reach


def _check_belongs(policy: Any, game: pyspiel.Game) -> None:
    """Checks, as far as possible, that a policy belongs to the game.

    Raises:
      ValueError: it belongs to another game.
    """
    from open_spiel.python import policy as openspiel_policy  # a slow import that loads all Python games, hence not at top

    if isinstance(policy, StrategyProfile):
        policy.check_knows(game)
    elif isinstance(policy, openspiel_policy.TabularPolicy):
        _check_num_players(game, policy)


def _distribution_at(state: pyspiel.State, policy: Any) -> dict[int, float]:
    """The distribution over actions that `policy` returns at a decision.

    Raises:
      ValueError: it does not return a distribution over the legal actions.
    """
    player = state.current_player()
    # OpenSpiel's C++ policies do not take the player; its Python games may need it.
    arguments = (state,) if isinstance(policy, pyspiel.Policy) else (state, player)
    key = state.information_state_string(player)
    missing = f"{at(state)} the policy of player {player} has no entry for infostate {key!r}"
    try:
        distribution = policy.action_probabilities(*arguments)
    except (LookupError, pyspiel.SpielError) as error:
        raise ValueError(f"{missing} ({error!r})") from error
    if not distribution:  # pyspiel.TabularPolicy returns an empty list at an infostate that it does not contain
        raise ValueError(missing)
    illegal = [action for action, value in distribution.items() if value != 0 and action not in state.legal_actions()]
    if illegal:
        raise ValueError(f"{at(state)} the policy of player {player} plays the illegal action {illegal[0]}: {distribution}")
    total, smallest = sum(distribution.values()), min(distribution.values())
    if not (abs(total - 1) <= PROBABILITY_TOLERANCE and smallest >= -PROBABILITY_TOLERANCE):
        raise ValueError(
            f"{at(state)} the policy of player {player} is not a probability distribution: {distribution} sums to {total}"
        )
    return dict(distribution)


def _wrong_number_of_policies(game: SequenceFormGame, num_policies: int) -> str:
    message = f"{game.tree.game} has {game.num_players} players, got {num_policies} policies"
    missing = [str(player) for player in range(num_policies, game.num_players)]
    return f"{message}: none for player {', '.join(missing)}" if missing else f"{message}; pass one for each player"


def _missing(game: SequenceFormGame, player: int, key: str) -> str:
    return f"{game.tree.game}: the policy of player {player} has no entry for infostate {key!r}"


def _illegal(game: SequenceFormGame, player: int, point: int, action: int, probability: float) -> str:
    key = game.treeplexes[player].infostate_keys[point]
    return (
        f"{game.tree.game}: the policy of player {player} plays the illegal action {action} with probability {probability} at "
        f"infostate {key!r}"
    )
