"""Warm starts: sessions that start from a given policy.

A warm start with a policy sigma and a weight w makes a session continue as if regret matching had produced sigma and all
players had played it for w iterations:

* the next iterations are numbered w + 1, w + 2, ..., so discounts and averaging weights are those after w iterations;
* sigma has the weight of iterations 1, ..., w in the average;
* the regrets at an infostate I are sigma(I) times a positive number, so that regret matching plays sigma, exactly and at all
  infostates, reached or not. Predictive variants have a prediction of zero in their first update.

The size of the regrets determines how soon the strategies leave sigma. By the proof of regret matching, after T iterations

    sum over a of max(R(I, a), 0)^2  <=  T |A(I)| (pi(I) Delta(I))^2,

where pi(I) is the others' reach of I, chance included, and Delta(I) the range of the player's payoffs below I. In practice
regrets grow less: after 200 iterations of CFR, CFR+, DCFR or PCFR+ on Leduc poker and liar's dice, the left side corresponds to
T < 0.4 at half of the infostates. Warm starts from the averages of such runs that make the two sides equal with T = 0.1, for
any w, mostly converge as well as the runs themselves; with T = 0.0001 NashConv rises at first, with T = 10 and more they learn
slowly.

Predictive solvers need larger regrets. Near an equilibrium small regrets cause long steps, for which the prediction of the next
values is inaccurate: the strategies move away from the equilibrium before they return, and the average includes them. In a run
from the start the tables grow until this stops; the policy does not determine their size. PDCFR+, warm-started with its average
after 200 iterations and run for 1,000 more, had 1.2e6 times the NashConv of the run itself on Kuhn poker with T = 0.1, 4,500
times on goofspiel with four cards; with T = 0.5 it was 1.0 and 1.2 times, and 0.009 to 2.8 times on four other games. T = 1 is
better for good policies, and learns more slowly from others. Therefore T = 0.1 without predictions, 0.5 with them, and
interpolated for weights in between: for a weight of 1/3, 0.2 was found suitable.

The bound on the regret of the following iterations is that of a cold start plus this part of an iteration, and the average
contains w times the NashConv of sigma.

Brown and Sandholm 2016 ("Strategy-based warm starting for regret minimization in games") also weight a policy in iterations.
The differences:

* their regrets are those of sigma against its own counterfactual values, scaled to the bound above, so the next strategy is not
  sigma; here the next strategy is sigma;
* they choose w by the quality of sigma; here the user chooses it. A first guess is the number of iterations that the solver
  needs to reach the quality of sigma;
* for pi(I) the others play sigma or the uniform policy, with probability 1/2 each, so that pi(I) is positive at all infostates,
  and the warm start keeps sigma also off its path.

If all payoffs below an infostate are equal, or chance never leads there, its regrets do not change, so their size is arbitrary.
"""

from __future__ import annotations

import numpy as np

from spiel_cfrplus.game.game_tree import NO_INFOSTATE, GameTree
from spiel_cfrplus.game.recall import trace_sequences
from spiel_cfrplus.kernels import layouts, passes
from spiel_cfrplus.kernels import tree as tree_kernels
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.solving.compiled_self_play import blocks
from spiel_cfrplus.solving.session import Feature, Session

# T in the bound on the squared regrets of a warm start; measured, see above.
_ITERATIONS_IN_REGRETS = 0.1
_MORE_ITERATIONS_FOR_PREDICTIONS = 0.4


def warm_started(session: Session, profile: StrategyProfile, weight: int) -> Session:
    """A session like `session`, on the whole game, as if all players had played `profile` for `weight` iterations.

    Raises:
      TypeError: see `Feature.WARM_START`.
      ValueError: the averaging weights are too large to be summed.
    """
    if reason := session.refusal(Feature.WARM_START):
        raise TypeError(reason)
    started = session.on_the_whole_game()
    started.load_state_dict(warm_start_state(session, profile, weight))
    return started


def warm_start_state(session: Session, profile: StrategyProfile, weight: int) -> dict[str, np.ndarray]:
    """The state of `session` after `weight` iterations of `profile`, for `load_state_dict`.

    Raises:
      ValueError: the averaging weights are too large to be summed.
    """
    rule = session.options().rule
    total_weight = sum(float(session.averaging.weights(iterations).sum()) for iterations in blocks(0, weight, 1))
    strategies = [profile.sequence_form(player) for player in range(session.game.num_players)]
    num_iterations = _ITERATIONS_IN_REGRETS + rule.prediction_weight * _MORE_ITERATIONS_FOR_PREDICTIONS
    regrets, policy = regrets_along(profile, num_iterations), np.ones(session.game.num_sequences)
    for player in range(session.game.num_players):
        passes.match_all_regrets(session.game.treeplex_arrays, player, regrets, policy)
    return {
        "policy": policy,
        **dict.fromkeys(rule.per_action, regrets),  # with a prediction of zero, predicted regrets equal regrets
        "cumulative_policy": total_weight * np.concatenate(strategies),
        "iteration": np.full(session.game.num_players, weight),
    }


def regrets_along(profile: StrategyProfile, num_iterations: float) -> np.ndarray:
    """A multiple of the policy at each infostate, at the bound for `num_iterations`, float64 (S,), in game units."""
    game = profile.game
    regrets = np.zeros(game.num_sequences)
    ranges = counterfactual_ranges(profile)
    for treeplex, own in zip(game.treeplexes, game.player_slices, strict=True):
        if treeplex.num_decision_points == 0:
            continue
        policy = np.maximum(profile.of_player(treeplex.player)[1:], 0)
        length = np.sqrt(np.add.reduceat(policy**2, treeplex.sequence_start[:-1] - 1))
        target = ranges[game.tree.infostate_player == treeplex.player] * np.sqrt(num_iterations * treeplex.num_actions)
        regrets[own][1:] = policy * np.repeat(target / length, treeplex.num_actions)
    return regrets


def counterfactual_ranges(profile: StrategyProfile) -> np.ndarray:
    """pi(I) Delta(I) at each infostate, float64 (I,), in game units; a positive number where that is 0."""
    tree = profile.game.tree
    last_sequence, _ = trace_sequences(tree)
    chance_reach = np.empty(tree.num_histories)
    tree_kernels.chance_reach(tree.parent, tree.chance_probability, chance_reach)
    reach_of = [
        (profile.sequence_form(player) + treeplex.sequence_form(treeplex.uniform_policy()))[last_sequence[:, player]] / 2
        for player, treeplex in enumerate(profile.game.treeplexes)
    ]
    decisions = np.flatnonzero(tree.infostate != NO_INFOSTATE)
    reach = chance_reach[decisions]
    for player, own_reach in enumerate(reach_of):
        reach *= np.where(tree.actor[decisions] == player, 1, own_reach[decisions])
    result = np.bincount(tree.infostate[decisions], reach, tree.num_infostates) * _payoff_ranges(tree, decisions)
    return np.where(result > 0, result, _magnitudes(profile))


def _payoff_ranges(tree: GameTree, decisions: np.ndarray) -> np.ndarray:
    """Delta: the range of the payoffs of the player to move below any history of each infostate, float64 (I,)."""
    # The terminal histories below a history are consecutive rows of `returns`; reduceat needs a row after the last range.
    rows = np.stack([np.searchsorted(tree.terminal, ends) for ends in (decisions, tree.subtree_end[decisions])], axis=1)
    returns = np.concatenate([tree.returns, tree.returns[-1:]])
    players, infostates = tree.actor[decisions], tree.infostate[decisions]
    highest, lowest = np.full(tree.num_infostates, -np.inf), np.full(tree.num_infostates, np.inf)
    for player in range(tree.num_players):
        if not (own := players == player).any():
            continue
        ends = rows[own].ravel()
        np.maximum.at(highest, infostates[own], np.maximum.reduceat(returns[:, player], ends)[::2])
        np.minimum.at(lowest, infostates[own], np.minimum.reduceat(returns[:, player], ends)[::2])
    return np.asarray(highest - lowest)


def _magnitudes(profile: StrategyProfile) -> np.ndarray:
    """A positive number at each infostate, of the magnitude of its payoffs unless they are all 0, float64 (I,)."""
    game = profile.game
    magnitudes = np.empty(game.num_infostates)
    for treeplex, own in zip(game.treeplexes, game.player_slices, strict=True):
        of_point = game.tie_tolerance[own][treeplex.sequence_start[:-1]] / layouts.RELATIVE_TIE_TOLERANCE
        magnitudes[game.tree.infostate_player == treeplex.player] = np.where(of_point > 0, of_point, 1.0)
    return magnitudes
