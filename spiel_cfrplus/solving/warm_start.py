"""Learning that goes on from a policy instead of from nothing.

A warm start with a policy sigma and a weight w makes a session go on as if everybody had played sigma for w iterations, and it
had come out of regret matching:

* the next iterations are numbered w + 1, w + 2, ..., so discounts and averaging weights are those of a run that old;
* sigma has the weight of iterations 1, ..., w in the average;
* the regrets at an infostate I are sigma(I) times a positive number, so that regret matching plays sigma, exactly and
  everywhere, also where nobody comes. Predictive variants predict nothing for their first update.

How large the regrets are decides how soon sigma is left. The proof of regret matching has it that after T iterations

    sum over a of max(R(I, a), 0)^2  <=  T |A(I)| (pi(I) Delta(I))^2,

where pi(I) is the others' reach of I, chance included, and Delta(I) the range of the player's payoffs below I. In fact regrets
do not grow like that: after 200 iterations of CFR, CFR+, DCFR or PCFR+ on Leduc poker and liar's dice, at half of the
infostates the left side is that of T < 0.4. Warm starts from the averages of such runs that make the two sides equal with
T = 0.1, whatever w, mostly go on as well as the runs themselves do; with T = 0.0001 they fall back at first, with T = 10 and
more they learn slowly.

Predictive solvers want larger regrets. Near an equilibrium small ones make long steps, too long for a prediction of the next
values to hold: the strategies spiral away before they come back, and the average remembers. The solver's own tables have grown
until that stopped; how far, the policy does not tell. PDCFR+, warm-started with its average after 200 iterations and run for
1,000 more, had 1.2e6 times the NashConv of the run itself on Kuhn poker with T = 0.1, 4,500 times on goofspiel with four cards;
with T = 0.5 it was 1.0 and 1.2 times, and from 0.009 to 2.8 times on four other games. T = 1 is better still where the policy
is good, and learns more slowly from policies that are not. So T = 0.1 it is without predictions, 0.5 with them, and in between
where they have a weight in between: 0.2 was measured to suit a weight of 1/3.

The bound on the regret of the iterations that follow is then that of a cold start but for this part of an iteration, and the
average has w times the NashConv of sigma to make up for.

Brown and Sandholm 2016 ("Strategy-based warm starting for regret minimization in games") weigh a policy in iterations too. Here
is different that

* their regrets are those of sigma against its own counterfactual values, from which another strategy than sigma comes out next,
  scaled to the bound above; here the next strategy is sigma itself;
* they choose w by the quality of sigma; here it is for the user to say. A weight to begin with is the number of iterations that
  the solver needs to get as far as sigma;
* for pi(I) the others play sigma or, as often, uniformly, so that it is nowhere zero, and sigma is kept off its path.

Where all payoffs below an infostate are the same, or chance never leads there, regrets stay as they are, of whatever size.
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

# T of the bound on the squares of regrets that a warm start meets; measured, see above.
_ITERATIONS_IN_REGRETS = 0.1
_MORE_ITERATIONS_FOR_PREDICTIONS = 0.4


def warm_started(session: Session, profile: StrategyProfile, weight: int) -> Session:
    """A session like `session`, on the whole game, as if everybody had played `profile` for `weight` iterations.

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
        **dict.fromkeys(rule.per_action, regrets),  # the predicted regrets are those that are known
        "cumulative_policy": total_weight * np.concatenate(strategies),
        "iteration": np.full(session.game.num_players, weight),
    }


def regrets_along(profile: StrategyProfile, num_iterations: float) -> np.ndarray:
    """At each infostate a multiple of the policy, as large as `num_iterations` may make it, float64 (S,), in game units."""
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
    """pi(I) Delta(I) at each infostate, float64 (I,), in game units; where that is 0, any positive number."""
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
    # What is below a history ends in consecutive rows of `returns`; reduceat wants a row where the last of them ends.
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
    """Something positive at each infostate, as large as its payoffs if it has any that are not 0, float64 (I,)."""
    game = profile.game
    magnitudes = np.empty(game.num_infostates)
    for treeplex, own in zip(game.treeplexes, game.player_slices, strict=True):
        of_point = game.tie_tolerance[own][treeplex.sequence_start[:-1]] / layouts.RELATIVE_TIE_TOLERANCE
        magnitudes[game.tree.infostate_player == treeplex.player] = np.where(of_point > 0, of_point, 1.0)
    return magnitudes
