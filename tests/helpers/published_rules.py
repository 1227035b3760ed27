"""Update rules as their papers write them, in NumPy, one object per infostate; and CFR with them on OpenSpiel's states.

Each has `update(regrets, t)`: it takes the instantaneous regrets of update t = 1, 2, ... and returns the next strategy.
"""

import numpy as np
import reference


def proportional(weights):
    positive = np.maximum(weights, 0.0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(positive), 1 / len(positive))


class APCFRPlus:
    """Meng, Zhang, Ge, Yang, Gao 2025, section 4.1, with all regrets in a list and Eq. 3 as a sum over it."""

    def __init__(self, num_actions):
        self.instantaneous = [np.zeros(num_actions)]  # r^0, r^1, ...
        self.implicit = [np.zeros(num_actions)]  # R^1, R^2, ...

    def update(self, regrets, t):
        self.instantaneous.append(regrets)
        self.implicit.append(np.maximum(self.implicit[-1] + regrets, 0))
        error = sum(((new - old) ** 2).sum() for old, new in zip(self.instantaneous, self.instantaneous[1:], strict=False))
        movement = sum(((new - old) ** 2).sum() for old, new in zip(self.implicit, self.implicit[1:], strict=False))
        alpha = min(np.sqrt(error / movement), 5) if movement > 0 else 5
        return proportional(self.implicit[-1] + regrets / (1 + alpha))


class IncreasingNorm:
    """(Predictive) regret matching+ whose stored regrets are lengthened to the norm that they had, where they are shorter."""

    def __init__(self, num_actions, prediction_weight):
        self.table, self.prediction_weight = np.zeros(num_actions), prediction_weight

    def update(self, regrets, t):
        new = np.maximum(self.table + regrets, 0)
        if 0 < np.linalg.norm(new) < np.linalg.norm(self.table):
            new = new / np.linalg.norm(new) * np.linalg.norm(self.table)
        self.table = new
        return proportional(new + self.prediction_weight * regrets)


class Smooth:
    """Smooth predictive regret matching+ (Farina, Grand-Clément, Kroer, Lee, Luo 2023) with the projection by sorting."""

    def __init__(self, num_actions, kept, floor=0.1):
        self.table, self.unit, self.kept, self.floor = np.zeros(num_actions), 0.0, kept, floor

    def projected(self, point, least):
        if np.maximum(point, 0).sum() >= least:
            return np.maximum(point, 0)
        descending = np.sort(point)[::-1]
        shifts = (np.cumsum(descending) - least) / np.arange(1, len(point) + 1)
        return np.maximum(point - shifts[descending > shifts][-1], 0)

    def update(self, regrets, t):
        self.unit = max(self.unit, np.abs(regrets).max())
        least = max(self.floor * len(regrets) * self.unit, self.kept * self.table.sum())
        self.table = self.projected(self.table + regrets, least)
        least = max(least, self.kept * self.table.sum())
        return proportional(self.projected(self.table + regrets, least))


class VADCFR:
    """Li, Schultz, Hennes, Lanctot 2026, Listing 5: RegretAccumulator, then PolicyFromRegretAccumulator."""

    def __init__(self, num_actions, sensitivity=0.5, boost=1.1, cap=-20.0):
        self.table, self.magnitude = np.zeros(num_actions), 0.0
        self.sensitivity, self.boost, self.cap = sensitivity, boost, cap

    def update(self, regrets, t):
        largest = np.abs(regrets).max()
        self.magnitude = largest if t == 1 else 0.1 * largest + 0.9 * self.magnitude
        volatility = min(1.0, self.magnitude / 2.0)
        alpha = max(0.1, 1.5 - self.sensitivity * volatility)
        beta = min(alpha, -0.1 - self.sensitivity * volatility)

        def discounted(table):
            return table * np.where(table >= 0, t**alpha / (t**alpha + 1), t**beta / (t**beta + 1))

        boosted = np.where(regrets > 0, self.boost * regrets, regrets)
        self.table = np.maximum(discounted(self.table) + boosted, self.cap)
        optimism = 1 / (1 + (t - 1) / 100) * max(0.0, 1 - self.sensitivity * volatility)
        return proportional(np.maximum(discounted(self.table) + optimism * boosted, 0) ** 1.5)


class Scheduled:
    """DCFR with the exponents 1 + 3 t / n and -1 - 2 t / n (Zhang, McAleer, Sandholm 2026)."""

    def __init__(self, num_actions, horizon):
        self.table, self.horizon = np.zeros(num_actions), horizon

    def update(self, regrets, t):
        strategy = proportional(self.table + regrets)
        alpha, beta = 1 + 3 * t / self.horizon, -1 - 2 * t / self.horizon
        table = self.table + regrets
        self.table = table * np.where(table > 0, t**alpha / (t**alpha + 1), t**beta / (t**beta + 1))
        return strategy


def last_policy(root, make_rule, num_iterations):
    """The policy after alternating updates of `make_rule(num_actions)` at every infostate; player 0 updates first."""
    policy = reference.uniform_policy(root)
    rules = {infostate: make_rule(len(strategy)) for infostate, strategy in policy.items()}
    for t in range(1, num_iterations + 1):
        for player in range(reference.num_players(root)):
            new = dict(policy)
            for infostate, values in reference.counterfactual_values(root, policy, player).items():
                utility = np.array([values[action] for action in policy[infostate]])
                played = np.array(list(policy[infostate].values()))
                strategy = rules[infostate].update(utility - played @ utility, t)
                new[infostate] = dict(zip(policy[infostate], strategy.tolist(), strict=True))
            policy = new
    return policy
