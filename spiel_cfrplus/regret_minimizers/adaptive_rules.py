"""Built-in local rules that were published from 2025 on. They are made with the means of users' rules, see `local_rule`.

Each is a row of `ALGORITHMS`, which adds the weights of the average. Other parameters make other members of a family:

>>> from spiel_cfrplus import make_solver
>>> import pyspiel
>>> unboosted = volatile_predictive_regret_matching.with_parameters(boost=1.0)
>>> solver = make_solver(unboosted, pyspiel.load_game("kuhn_poker"))
>>> solver.run(10)
"""

from __future__ import annotations

import numpy as np

from spiel_cfrplus.kernels import adaptive_regret_matching as kernels
from spiel_cfrplus.regret_minimizers.local_rules import local_rule


def logarithm(iterations: np.ndarray) -> np.ndarray:
    """log t, float64 (T,)."""
    return np.asarray(np.log(iterations))


def fading_prediction(iterations: np.ndarray) -> np.ndarray:
    """1 / (1 + (t - 1) / 100), float64 (T,): the prediction weight of VAD-CFR."""
    return np.asarray(100.0 / (99.0 + iterations))


asymmetric_predictive_regret_matching_plus = local_rule(
    kernels.asymmetric_regret_matching,
    name="asymmetric_predictive_regret_matching_plus",
    per_action=("regrets", "last_regrets"),
    per_infostate=("error", "movement"),
    parameters={"largest_asymmetry": 5.0},
    scale_free=True,
    weighs_actions=True,
)
"""The local rule of APCFR+ (Meng, Zhang, Ge, Yang, Gao 2025, section 4.1 and Eq. 3).

PRM+ whose prediction is divided by 1 + alpha. At each decision point alpha^2 is the sum of |r^t - r^(t-1)|^2 divided by that of
|R^(t+1) - R^t|^2, and alpha is at most `largest_asymmetry`. Deviation: alpha is `largest_asymmetry` where the second sum is
zero, for which the paper has no rule.
"""

increasing_predictive_regret_matching_plus = local_rule(
    kernels.increasing_regret_matching,
    name="increasing_predictive_regret_matching_plus",
    per_action=("regrets",),
    parameters={"prediction_weight": 1.0},
    scale_free=True,
    weighs_actions=True,
)
"""PRM+ whose stored regrets have a 2-norm that never decreases, as in IREG-PRM+ (Zhang, Anagnostides, Sandholm 2025).

With `prediction_weight=0` it is RM+ with the same property. Deviations: this follows the description in the paper's abstract
and was not compared with its listing; the norm is restored by multiplying the updated regrets; if an update sets all of them
to zero, they remain zero.
"""

smooth_predictive_regret_matching_plus = local_rule(
    kernels.smooth_regret_matching,
    name="smooth_predictive_regret_matching_plus",
    per_action=("regrets",),
    per_infostate=("unit",),
    parameters={"floor": 0.1, "kept": 0.0},
    scale_free=True,
    weighs_actions=True,
)
"""Smooth PRM+ (Farina, Grand-Clément, Kroer, Lee, Luo 2023): PRM+ with the tables projected onto {x >= 0, sum of x >= L}.

L is `floor` times the number of actions times the largest |r| of the decision point until now. Where the paper has a constant
L and a step size, this does not depend on the unit of the payoffs. With `kept=1` L is also at least the sum of the stored
regrets, which therefore never decreases, as in MI-SPRM+ (2026). Deviations: L is not constant; the tables are zero at first,
not at L; the listing of MI-SPRM+ was not available, so only its idea is implemented, with a projection that includes the
prediction.
"""

volatile_predictive_regret_matching = local_rule(
    kernels.volatile_regret_matching,
    name="volatile_predictive_regret_matching",
    per_action=("regrets",),
    per_infostate=("magnitude",),
    parameters={
        "alpha": 1.5,
        "beta": -0.1,
        "sensitivity": 0.5,
        "unit": 2.0,
        "smoothing": 0.1,
        "boost": 1.1,
        "floor": -20.0,
        "exponent": 1.5,
        "prediction_weight": fading_prediction,
        "log_t": logarithm,
    },
)
"""The update of VAD-CFR (Li, Schultz, Hennes, Lanctot 2026, Listing 5), an algorithm found by program search.

The volatility v of a decision point is a moving average of max |r| with weight `smoothing`, divided by `unit`, at most 1.
Stored regrets are discounted by t^a / (t^a + 1) if positive, otherwise by t^b / (t^b + 1), where
a = max(0.1, alpha - sensitivity v) and b = min(a, beta - sensitivity v); r is added, its positive elements times `boost`;
results are at least `floor`. The policy is proportional to the positive part, to the power `exponent`, of the discounted new
regrets plus the prediction, which has weight `prediction_weight` (1 - sensitivity v).

Ablations are parameters: `sensitivity=0.0`, `boost=1.0`, `exponent=1.0`, `prediction_weight=0.0`, `floor=-1e300`.

`unit` and `floor` are in units of the payoffs, so the rule depends on the unit: multiply both by the range of the payoffs
divided by the range for which they are meant. Deviations: the magnitude is stored per decision point; the listing's average,
which weights each decision point by its regrets, is replaced by weights of the iterations.
"""

sharpened_predictive_regret_matching = local_rule(
    kernels.sharpened_regret_matching,
    name="sharpened_predictive_regret_matching",
    per_action=("regrets",),
    parameters={
        "alpha": 1.5,
        "beta": -0.1,
        "boost": 1.0,
        "exponent": 1.5,
        "prediction_weight": fading_prediction,
        "log_t": logarithm,
    },
    scale_free=True,
    weighs_actions=True,
)
"""VAD-CFR's update without volatility, boost and floor: an ablation of `volatile_predictive_regret_matching`.

It does not depend on the unit of the payoffs. As there, the exponent of negative regrets is min(alpha, beta).
"""
