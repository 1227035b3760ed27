"""CFR and CFR+ in fractions: what `reference` computes, without rounding."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import reference
from games import Chance, End, Node


def rational(number: float) -> Fraction:
    """The nearest fraction with a small denominator, as payoffs and probabilities of these games have."""
    return Fraction(number).limit_denominator(10_000)


def exact_values(root: Node, policy: Any, player: int) -> Any:
    """v(I)_a as in `reference.counterfactual_values`, in fractions."""
    table: Any = defaultdict(lambda: defaultdict(Fraction))

    def visit(node: Node, others_reach: Fraction) -> Fraction:
        if isinstance(node, End):
            return rational(node.returns[player])
        if isinstance(node, Chance):
            pairs = zip(map(rational, node.probabilities), node.children, strict=True)
            return sum((p * visit(child, others_reach * p) for p, child in pairs), Fraction())
        strategy = policy[node.player, node.key]
        if node.player != player:
            return sum((p * visit(node.children[action], others_reach * p) for action, p in strategy.items()), Fraction())
        values = {action: visit(child, others_reach) for action, child in node.children.items()}
        for action, value in values.items():
            table[player, node.key][action] += others_reach * value
        return sum((strategy[action] * value for action, value in values.items()), Fraction())

    visit(root, Fraction(1))
    return table


def exact_match(regrets: dict[int, Fraction]) -> dict[int, Fraction]:
    total = sum(max(regret, 0) for regret in regrets.values())
    return {action: max(regret, 0) / total if total else Fraction(1, len(regrets)) for action, regret in regrets.items()}


def exact_iterates(root: Node, num_iterations: int, *, plus: bool, alternating: bool) -> list[Any]:
    """sigma^1 .. sigma^T of CFR or CFR+, as in `reference.iterates`, in fractions."""
    tables = {key: dict.fromkeys(strategy, Fraction()) for key, strategy in reference.uniform_policy(root).items()}
    new, result = {key: exact_match(table) for key, table in tables.items()}, []
    for _ in range(num_iterations):
        old, new = new, dict(new)
        for player in range(reference.num_players(root)):
            for key, values in exact_values(root, new if alternating else old, player).items():
                mean = sum(old[key][action] * value for action, value in values.items())
                for action, value in values.items():
                    regret = tables[key][action] + value - mean
                    tables[key][action] = max(regret, Fraction()) if plus else regret
                new[key] = exact_match(tables[key])
        result.append(new)
    return result
