"""CFR, best responses and game values, slow, recursive and independent of the package.

Everything works on the `Node` trees that `games.tree_of` reads from OpenSpiel states. A policy of all players is a dictionary
from infostates (player, string) to {action: probability}.
"""

import functools
import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from games import Chance, End, Node, Turn

Infostate = tuple[int, str]
Policy = dict[Infostate, dict[int, float]]
Plan = tuple[tuple[Infostate, int], ...]  # a player's own past: (infostate, action) pairs


def nodes(node: Node) -> Iterator[Node]:
    """All nodes in preorder."""
    yield node
    if not isinstance(node, End):
        for child in node.children.values() if isinstance(node, Turn) else node.children:
            yield from nodes(child)


def num_players(root: Node) -> int:
    return len(next(node for node in nodes(root) if isinstance(node, End)).returns)


def branches(node: Turn | Chance, policy: Policy) -> list[tuple[float, Node]]:
    """The (probability, child) pairs of a node."""
    if isinstance(node, Chance):
        return list(zip(node.probabilities, node.children, strict=True))
    return [(policy[node.player, node.key][action], child) for action, child in node.children.items()]


def plain_sum(values: Iterable[float]) -> float:
    """From left to right, rounding at each step, as OpenSpiel does; since Python 3.12 `sum` compensates and breaks ties."""
    return functools.reduce(operator.add, values, 0.0)


def expected_value(node: Node, policy: Policy, player: int) -> float:
    if isinstance(node, End):
        return node.returns[player]
    return plain_sum(probability * expected_value(child, policy, player) for probability, child in branches(node, policy))


# CFR.


def uniform_policy(root: Node) -> Policy:
    turns = [node for node in nodes(root) if isinstance(node, Turn)]
    return {(turn.player, turn.key): {action: 1 / len(turn.children) for action in turn.children} for turn in turns}


def counterfactual_values(root: Node, policy: Policy, player: int) -> dict[Infostate, dict[int, float]]:
    """v(I)_a = sum over histories h of I of (reach of chance and the others) * (expected utility after a)."""
    table: dict[Infostate, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    def visit(node: Node, others_reach: float) -> float:
        if isinstance(node, End):
            return node.returns[player]
        if isinstance(node, Chance) or node.player != player:
            return plain_sum(p * visit(child, others_reach * p) for p, child in branches(node, policy))
        infostate = (player, node.key)
        values = {action: visit(child, others_reach) for action, child in node.children.items()}
        for action, value in values.items():
            table[infostate][action] += others_reach * value
        return plain_sum(policy[infostate][action] * value for action, value in values.items())

    visit(root, 1.0)
    return table


def match_regrets(regrets: dict[int, float]) -> dict[int, float]:
    positive = {action: max(regret, 0.0) for action, regret in regrets.items()}
    total = plain_sum(positive.values())
    return {action: value / total if total > 0 else 1 / len(positive) for action, value in positive.items()}


def iterates(root: Node, num_iterations: int, *, plus: bool, alternating: bool = True) -> list[Policy]:
    """sigma^0, sigma^1, ..., sigma^T of CFR or CFR+; alternating updates start with player 0."""
    old = uniform_policy(root)
    tables: dict[Infostate, dict[int, float]] = {infostate: dict.fromkeys(old[infostate], 0.0) for infostate in old}
    result = [old]
    for _ in range(num_iterations):
        old, new = result[-1], dict(result[-1])
        for player in range(num_players(root)):
            for infostate, values in counterfactual_values(root, new if alternating else old, player).items():
                mean = plain_sum(old[infostate][action] * value for action, value in values.items())
                for action, value in values.items():
                    regret = tables[infostate][action] + value - mean
                    tables[infostate][action] = max(regret, 0.0) if plus else regret
                new[infostate] = match_regrets(tables[infostate])
        result.append(new)
    return result


def average_policy(root: Node, sigmas: Sequence[Policy], *, power: float, first: Sequence[int]) -> Policy:
    """The average of the sequence-form strategies sigma_p^first[p], sigma_p^(first[p] + 1), ..., weight i**power on the i-th.

    The number of averaged strategies is the number of iterations, len(sigmas) - 1.
    """
    pasts = own_pasts(root)
    sums: Policy = {infostate: dict.fromkeys(strategy, 0.0) for infostate, strategy in sigmas[0].items()}
    for infostate, past in pasts.items():
        for i in range(1, len(sigmas)):
            sigma = sigmas[first[infostate[0]] + i - 1]
            reach = math.prod(sigma[earlier][action] for earlier, action in past)
            for action, probability in sigma[infostate].items():
                sums[infostate][action] += i**power * reach * probability
    return {infostate: match_regrets(weights) for infostate, weights in sums.items()}


def own_pasts(root: Node) -> dict[Infostate, Plan]:
    """The earlier moves of the player at each infostate, on the path to one of its histories."""
    pasts: dict[Infostate, Plan] = {}

    def visit(node: Node, past: dict[int, Plan]) -> None:
        if isinstance(node, Chance):
            for child in node.children:
                visit(child, past)
        if isinstance(node, Turn):
            infostate, own = (node.player, node.key), past.get(node.player, ())
            pasts[infostate] = own
            for action, child in node.children.items():
                visit(child, {**past, node.player: (*own, (infostate, action))})

    visit(root, {})
    return pasts


# Best responses.


def best_response_value(root: Node, policy: Policy, player: int) -> float:
    """The best-response value of `player`: one choice for all histories of an infostate."""

    def value(weighted: list[tuple[float, Node]]) -> float:
        earned = 0.0
        together: dict[str, list[tuple[float, Turn]]] = defaultdict(list)
        while weighted:
            weight, node = weighted.pop()
            if isinstance(node, End):
                earned += weight * node.returns[player]
            elif isinstance(node, Turn) and node.player == player:
                together[node.key].append((weight, node))
            else:
                weighted.extend((weight * probability, child) for probability, child in branches(node, policy))
        for turns in together.values():
            actions = turns[0][1].children
            earned += max(value([(weight, turn.children[action]) for weight, turn in turns]) for action in actions)
        return earned

    return value([(1.0, root)])


def nash_conv(root: Node, policy: Policy) -> float:
    """The sum of the players' improvements by best responses."""
    players = range(num_players(root))
    return plain_sum(best_response_value(root, policy, player) - expected_value(root, policy, player) for player in players)


# The value of a two-player zero-sum game.


def zero_sum_value(root: Node) -> float:
    """Player 0's value: max over plans x of min over plans y of x . A y, by linear programming on the sequence form.

    By duality the inner minimum is the largest v[root] with v[j] <= (A^T x)[ja] + sum of v over the infostates that follow ja.
    """
    pasts = own_pasts(root)
    plans: tuple[dict[Plan, int], ...] = ({(): 0}, {(): 0})
    for (player, key), strategy in uniform_policy(root).items():
        for action in strategy:
            plan = (*pasts[player, key], ((player, key), action))
            plans[player].setdefault(plan, len(plans[player]))
    payoff = np.zeros((len(plans[0]), len(plans[1])))

    def visit(node: Node, chance: float, past: tuple[Plan, Plan]) -> None:
        if isinstance(node, End):
            payoff[plans[0][past[0]], plans[1][past[1]]] += chance * node.returns[0]
        elif isinstance(node, Chance):
            for probability, child in zip(node.probabilities, node.children, strict=True):
                visit(child, chance * probability, past)
        else:
            for action, child in node.children.items():
                step = ((node.player, node.key), action)
                visit(child, chance, tuple((*own, step) if p == node.player else own for p, own in enumerate(past)))

    visit(root, 1.0, ((), ()))
    constraints = [_plan_constraints(plans[player], pasts, player) for player in range(2)]
    (own, own_right), (other, other_right) = constraints
    num_x, num_v = len(plans[0]), len(other_right)
    result = scipy.optimize.linprog(
        np.concatenate([np.zeros(num_x), -other_right]),
        A_ub=np.hstack([-payoff.T, other.T]),
        b_ub=np.zeros(payoff.shape[1]),
        A_eq=np.hstack([own, np.zeros((len(own), num_v))]),
        b_eq=own_right,
        bounds=[(0, None)] * num_x + [(None, None)] * num_v,
    )
    assert result.success, result.message
    return -result.fun


def _plan_constraints(plans: dict[Plan, int], pasts: dict[Infostate, Plan], player: int) -> tuple[np.ndarray, np.ndarray]:
    """E and e such that E x = e: the empty plan has weight 1, and an infostate's plans add up to the one before them."""
    own = [infostate for infostate in pasts if infostate[0] == player]
    matrix, right = np.zeros((1 + len(own), len(plans))), np.zeros(1 + len(own))
    matrix[0, 0] = right[0] = 1
    for row, infostate in enumerate(own, 1):
        matrix[row, plans[pasts[infostate]]] = -1
        for plan, column in plans.items():
            if plan and plan[-1][0] == infostate:
                matrix[row, column] = 1
    return matrix, right


# Talking to the package.


def random_policy(treeplex: Any, seed: int) -> np.ndarray:
    """A behavioral policy of a `Treeplex`, float64 (S,), in which some probabilities are zero."""
    rng = np.random.default_rng(seed)
    policy = np.ones(treeplex.num_sequences)
    for point in range(treeplex.num_decision_points):
        own = treeplex.sequences(point)
        weights = rng.exponential(size=len(own)) * (rng.random(len(own)) < 0.8)
        weights[rng.integers(len(own))] += 0.1
        policy[own.start : own.stop] = weights / weights.sum()
    return policy


def random_probabilities(game: Any, seed: int) -> np.ndarray:
    """The `random_policy` of each player of a `SequenceFormGame`, one after the other."""
    return np.concatenate([random_policy(treeplex, seed + treeplex.player) for treeplex in game.treeplexes])


def policy_of(profile: Any) -> Policy:
    """A `StrategyProfile` of the package in the form used here."""
    policy: Policy = {}
    for player, treeplex in enumerate(profile.game.treeplexes):
        probabilities = profile.of_player(player)
        for point, key in enumerate(treeplex.infostate_keys):
            own = treeplex.sequences(point)
            policy[player, key] = {int(treeplex.actions[sequence]): float(probabilities[sequence]) for sequence in own}
    return policy


def distance(left: Policy, right: Policy) -> float:
    """The largest difference between two probabilities; both policies must have the same infostates and actions."""
    assert {key: set(strategy) for key, strategy in left.items()} == {key: set(strategy) for key, strategy in right.items()}
    return max((abs(left[key][action] - right[key][action]) for key in left for action in left[key]), default=0.0)
