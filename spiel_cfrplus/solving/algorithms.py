"""The table of algorithms: name, update rule, weights of the average, and source of each.

A user's `Algorithm` is another row, which `solvers.make_solver` takes in place of a name:

>>> import pyspiel
>>> from spiel_cfrplus import make_solver
>>> from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching
>>> mine = Algorithm("mine", DiscountedRegretMatching(1.2, -0.5), averaging_power=3.0, source="this example")
>>> solver = make_solver(mine, pyspiel.load_game("kuhn_poker"), averaging="openspiel")
>>> solver.run(500)
>>> solver.nash_conv() < 1e-2
True
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.treeplex import Treeplex
from spiel_cfrplus.regret_minimizers import adaptive_rules, step_rules
from spiel_cfrplus.regret_minimizers.cfr import ComposedCFR
from spiel_cfrplus.regret_minimizers.compiled_rules import CompiledRule
from spiel_cfrplus.regret_minimizers.minimizer import RegretMinimizer, checked_step_size, checked_weight
from spiel_cfrplus.regret_minimizers.regret_matching import (
    DiscountedRegretMatching,
    DiscountSchedule,
    RegretMatching,
    RegretMatchingPlus,
    RegretMatchingRule,
    ScheduledRegretMatching,
    as_local_rule,
)
from spiel_cfrplus.regret_minimizers.simplex import Hedge, ProjectedGradientAscent, SimplexRegretMatching
from spiel_cfrplus.regret_minimizers.treeplex_minimizers import (
    DilatedEntropyAscent,
    DilatedEuclideanAscent,
    MultiplicativeWeights,
    TreeplexGradientAscent,
)
from spiel_cfrplus.solving.averaging import Averaging
from spiel_cfrplus.solving.best_response_play import check_players
from spiel_cfrplus.solving.compiled_self_play import CompiledBestResponsePlay, CompiledSelfPlay
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import ALONE, IN_PYTHON, Feature, Session
from spiel_cfrplus.solving.symmetry import Reduction


@dataclasses.dataclass(frozen=True)
class Play:
    """Options of a session; see the arguments of `solvers.Solver`.

    Attributes:
      averaging: the weights of the average.
      alternating: the order of updates.
      reduction: the reduced game to iterate on, or None.
      exact_ties: whether regrets within rounding of zero are set to zero.
      threads: the number of threads.
      records_utilities: whether the session can compute regrets.
    """

    averaging: Averaging
    alternating: bool = True
    reduction: Reduction | None = None
    exact_ties: bool = True
    threads: int = 1
    records_utilities: bool = False


@dataclasses.dataclass(frozen=True)
class Engine:
    """A kind of session on which algorithms run.

    Attributes:
      start: makes a session of an algorithm.
      refused_options: the options that its solvers do not take, by name, with the reasons.
      refusals: the features that none of its sessions has, with the reasons.
    """

    start: Callable[[Algorithm, SequenceFormGame, Play], Session]
    refused_options: Mapping[str, str]
    refusals: Mapping[Feature, str]


def _start_self_play(algorithm: Algorithm, game: SequenceFormGame, play: Play) -> Session:
    return CompiledSelfPlay(
        game,
        algorithm.rule,
        play.averaging,
        play.alternating,
        play.exact_ties,
        play.reduction,
        play.threads,
        play.records_utilities,
    )


def _start_best_response_play(algorithm: Algorithm, game: SequenceFormGame, play: Play) -> Session:
    check_players(game)
    return CompiledBestResponsePlay(game, algorithm.rule, play.averaging, False, play.exact_ties)


def _start_in_python(algorithm: Algorithm, game: SequenceFormGame, play: Play) -> Session:
    return SelfPlay(game, algorithm.minimizers(game), play.averaging, play.alternating)


SELF_PLAY = Engine(_start_self_play, {}, CompiledSelfPlay.refusals)
BEST_RESPONSES = Engine(
    _start_best_response_play,
    dict.fromkeys(("alternating", "reduce", "threads", "record_regrets"), ALONE),
    CompiledBestResponsePlay.refusals,
)
PYTHON = Engine(_start_in_python, dict.fromkeys(("rule", "reduce", "exact_ties", "threads"), IN_PYTHON), SelfPlay.refusals)


@dataclasses.dataclass(frozen=True, eq=False)
class Algorithm:
    """A row of the table.

    Attributes:
      name: its name in `make_solver`, on the command line and in checkpoints.
      rule: the update rule; None if `minimizer` iterates.
      averaging_power: the default weights of the average are t ** power.
      averaging: the default average, if its weights are others.
      source: the paper.
      notes: what else its users should know, in one line, which the command line prints.
      minimizer: makes the same learner for a treeplex as a Python object, with a bound on its regret; the default makes one
        for rules of the regret-matching family only.
      step_rule: makes the rule with another `step_size` or `prediction_weight`; None for rules without step size.
      engine: the kind of its sessions.
    """

    name: str
    rule: Any
    averaging_power: float = 1.0
    source: str = ""
    minimizer: Callable[..., RegretMinimizer] | None = None
    step_rule: Callable[..., CompiledRule] | None = None
    engine: Engine = SELF_PLAY
    averaging: Averaging | None = None
    notes: str = ""

    def __post_init__(self) -> None:
        if self.rule is not None:
            object.__setattr__(self, "rule", checked_rule(self.rule))

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        if ALGORITHMS.get(self.name) is self:
            return named, (self.name,)
        return Algorithm, tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Algorithm:
        return self

    @property
    def default_averaging(self) -> Averaging:
        """The average of its solvers unless another one is given."""
        return Averaging(self.averaging_power) if self.averaging is None else self.averaging

    def averaging_with(self, power: float | None, convention: str, delay: int) -> Averaging:
        """The default average with another convention; weights (t - delay) ** power if one of these numbers is given.

        Raises:
          TypeError, ValueError: see `Averaging`.
        """
        average = self.default_averaging
        if power is not None or delay:
            average = Averaging(average.power if power is None else power, delay=delay)
        return dataclasses.replace(average, convention=convention)

    @property
    def has_minimizers(self) -> bool:
        """Whether the algorithm exists as Python objects, see `minimizers`."""
        return self.minimizer is not None or isinstance(self.rule, RegretMatchingRule)

    def start(self, game: SequenceFormGame, play: Play) -> Session:
        """Makes a session of the algorithm."""
        return self.engine.start(self, game, play)

    def refusal(self, feature: Feature) -> str:
        """Why none of its sessions has the feature; empty if some have it."""
        return self.engine.refusals.get(feature, "")

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of its rule that are options of solvers."""
        if self.step_rule is not None:
            return frozenset(("step_size", "prediction_weight"))
        if self.rule is None:
            return frozenset()
        names = {name for name, _ in self.rule.parameters}
        return frozenset(names | {"prediction_weight"} if self.rule.matches_regrets else names)

    def option_refusal(self, option: str) -> str:
        """Why its solvers do not take an option; empty if they do."""
        reason = self.engine.refused_options.get(option, "")
        if option == "exact_ties" and self.rule is not None and not self.rule.reads_ties:
            reason = reason or "its rule does not depend on which regrets are exactly zero"
        if option in ("prediction_weight", "step_size") and option not in self.parameters:
            return f"{self.name} takes no {option.replace('_', ' ')}"
        if option == "reduce" and self.rule is not None and not self.rule.merges_infostates:
            reason = reason or "its rule does not declare that infostates may be merged"
        if option == "threads" and self.rule is not None and not self.rule.works_in_parts:
            reason = reason or "the updates of its rule cannot be divided"
        return f"{self.name} takes no {option.replace('_', ' ')}: {reason}" if reason else ""

    def check_options(self, *options: str) -> None:
        """Checks that its solvers take the options.

        Raises:
          TypeError: they do not take one of them.
        """
        for option in options:
            if reason := self.option_refusal(option):
                raise TypeError(reason)

    def with_rule(self, rule: Any) -> Algorithm:
        """The same algorithm with another rule; with discounts, the prediction weight is unchanged.

        Raises:
          TypeError: it is not a rule, or the algorithm takes none.
        """
        self.check_options("rule")
        weight = self.rule.prediction_weight if isinstance(rule, DiscountSchedule) else None
        return dataclasses.replace(self, rule=checked_rule(rule, weight))

    def with_parameters(self, **parameters: float) -> Algorithm:
        """The same algorithm with other parameters of its rule.

        Raises:
          TypeError: a parameter does not exist, or is not a number.
          ValueError: a number is out of range.
        """
        if not parameters:
            return self
        self.check_options(*parameters)
        checked = {name: _CHECKS[name](value) for name, value in parameters.items()}
        if self.step_rule is not None:
            assert self.minimizer is not None
            step_rule, minimizer = functools.partial(self.step_rule, **checked), functools.partial(self.minimizer, **checked)
            return dataclasses.replace(self, rule=step_rule(), step_rule=step_rule, minimizer=minimizer)
        rule = self.rule
        if "prediction_weight" in checked:
            rule = rule.with_prediction_weight(checked.pop("prediction_weight"))
        return dataclasses.replace(self, rule=rule.with_parameters(**checked))

    def minimizers(self, game: SequenceFormGame) -> list[RegretMinimizer]:
        """The algorithm as Python objects, one for each player, with bounds on their regrets.

        Raises:
          TypeError: its rule has no Python objects.
        """
        if self.minimizer is not None:
            return [self.minimizer(treeplex) for treeplex in game.treeplexes]
        if not self.has_minimizers:
            raise TypeError(f"{self.name} has no minimizers in Python")
        return [_regret_matching(self.rule, game, treeplex) for treeplex in game.treeplexes]


def _regret_matching(rule: RegretMatchingRule, game: SequenceFormGame, treeplex: Treeplex) -> ComposedCFR:
    tie_tolerance = game.tie_tolerance[game.player_slices[treeplex.player]][1:]
    local = SimplexRegretMatching(
        treeplex.num_actions, rule.discounts, prediction_weight=rule.prediction_weight, tie_tolerance=tie_tolerance
    )
    return ComposedCFR(treeplex, local)


def cfr_of(local_minimizer: Callable[..., RegretMinimizer], treeplex: Treeplex, **options: Any) -> ComposedCFR:
    """CFR with the same type of local minimizer at all decision points."""
    return ComposedCFR(treeplex, local_minimizer(treeplex.num_actions, **options))


def checked_rule(rule: Any, prediction_weight: float | None = None) -> CompiledRule:
    """Returns a compiled rule itself, or regret matching with the given discounts.

    Raises:
      TypeError: `rule` is neither a compiled rule nor discounts.
    """
    return rule if isinstance(rule, CompiledRule) else as_local_rule(rule, prediction_weight)


# The parameters of rules that are options of solvers, flags and options of sweeps.
_CHECKS: dict[str, Callable[[Any], float]] = {"prediction_weight": checked_weight, "step_size": checked_step_size}
PARAMETERS = tuple(_CHECKS)


# The table.

_FARINA = 'Farina, Kroer, Sandholm 2021, "Faster game solving via predictive Blackwell approachability"'
_XU = 'Xu, Li, Liu, Fu, Fu, Xing, Cheng 2024, "Minimizing weighted counterfactual regret with optimistic online mirror descent"'
_MENG = 'Meng, Zhang, Ge, Yang, Gao 2025, "Faster game solving via asymmetry of step sizes"'
_BROWN = 'Brown, Sandholm 2019, "Solving imperfect-information games via discounted regret minimization"'
_JOHANSON = 'Johanson, Bard, Burch, Bowling 2012, "Finding optimal abstract strategies in extensive-form games"'
_TAMMELIN = 'Tammelin 2014, "Solving large imperfect information games using CFR+"'
_ZINKEVICH = 'Zinkevich, Johanson, Bowling, Piccione 2007, "Regret minimization in games with incomplete information"'
_LECTURE = "MIT 6.7980, Lecture 8"
_LI = 'Li, Schultz, Hennes, Lanctot 2026, "Discovering multiagent learning algorithms with large language models"'
_SCALE = 'Zhang, Anagnostides, Sandholm 2025, "Scale-invariant regret matching and online learning with optimal convergence"'
_SMOOTH = 'Farina, Grand-Clement, Kroer, Lee, Luo 2023, "Regret matching+: (in)stability and fast convergence in games"'
_SCHEDULES = 'Zhang, McAleer, Sandholm 2026, "Faster game solving via hyperparameter schedules"'


def _family(discounts: DiscountSchedule, prediction_weight: float = 0.0) -> RegretMatchingRule:
    return RegretMatchingRule.of(discounts, prediction_weight)


def _rows_with_schedules(horizon: int = 1000) -> list[Algorithm]:
    """Hyperparameter schedules with gamma = 30 - 5 t / n for the number n of iterations in the paper's experiments.

    For another n, pass a `ScheduledRegretMatching` and an `Averaging` with that horizon. PCFR+ has no exponents; that of PDCFR+
    is not scheduled.
    """
    average = Averaging(30.0, decrease=5.0, horizon=horizon)
    return [
        Algorithm(name, rule, average.power, source, averaging=average)
        for name, rule, source in (
            ("hs-dcfr", _family(ScheduledRegretMatching(horizon)), _SCHEDULES),
            ("hs-pcfr+", _family(RegretMatchingPlus(), 1.0), f"{_SCHEDULES}; {_FARINA}"),
            ("hs-pdcfr+", _family(DiscountedRegretMatching(2.3, -math.inf), 1.0), f"{_SCHEDULES}; {_XU}"),
        )
    ]


def _adaptive_rows() -> list[Algorithm]:
    """See `adaptive_rules` for the deviations from the papers."""
    increasing = adaptive_rules.increasing_predictive_regret_matching_plus
    # The listing of VAD-CFR averages from iteration 500 on, with weights that begin at t^2.
    late = Averaging(2.0, delay=500)
    volatile, sharpened = (
        adaptive_rules.volatile_predictive_regret_matching,
        adaptive_rules.sharpened_predictive_regret_matching,
    )
    return [
        Algorithm("apcfr+", adaptive_rules.asymmetric_predictive_regret_matching_plus, 2.0, _MENG),
        Algorithm("spcfr+", adaptive_rules.smooth_predictive_regret_matching_plus, 2.0, _SMOOTH),
        Algorithm("mi-spcfr+", adaptive_rules.smooth_predictive_regret_matching_plus.with_parameters(kept=1.0), 2.0, _SMOOTH),
        Algorithm("ireg-pcfr+", increasing, 2.0, _SCALE),
        Algorithm("ireg-cfr+", increasing.with_parameters(prediction_weight=0.0), 2.0, _SCALE),
        Algorithm("vad-cfr", volatile, late.power, _LI, averaging=late),
        Algorithm("vad-cfr-core", sharpened, late.power, f"an ablation of {_LI}", averaging=late),
    ]


def _recommended_row() -> Algorithm:
    """The rule and the average with the smallest worst ratio to the best row of each game, see docs/choosing.md.

    The weights t^5 need no planned number of iterations. The row does not depend on the game.
    """
    return Algorithm(
        "auto",
        _family(DiscountedRegretMatching(2.3, -math.inf), 1 / 3),
        5.0,
        f"{_MENG}; {_XU}",
        notes="auto is sapdcfr+ with weights t^5, chosen by measurements after 1,000 iterations (docs/choosing.md)",
    )


def _rows_that_take_steps() -> list[Algorithm]:
    rows = []
    for name, rule, make in (
        ("cfr_hedge", step_rules.hedge, functools.partial(cfr_of, Hedge)),
        ("cfr_gradient_ascent", step_rules.gradient_ascent, functools.partial(cfr_of, ProjectedGradientAscent)),
        ("gradient_ascent", step_rules.treeplex_gradient_ascent, TreeplexGradientAscent),
        ("dilated_entropy", step_rules.dilated_entropy, DilatedEntropyAscent),
        ("dilated_euclidean", step_rules.dilated_euclidean, DilatedEuclideanAscent),
        ("multiplicative_weights", step_rules.multiplicative_weights, MultiplicativeWeights),
    ):
        for prefix, weight in (("", 0.0), ("predictive_", 1.0)):
            minimizer = functools.partial(make, step_size=None, prediction_weight=weight)
            step_rule = functools.partial(rule, step_size=None, prediction_weight=weight)
            rows.append(Algorithm(f"{prefix}{name}", step_rule(), 1.0, _LECTURE, minimizer, step_rule))
    return rows


ALGORITHMS: dict[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm("cfr", _family(RegretMatching()), 0.0, _ZINKEVICH),
        Algorithm("cfr+", _family(RegretMatchingPlus()), 1.0, _TAMMELIN),
        Algorithm("lcfr", _family(DiscountedRegretMatching(1.0, 1.0)), 1.0, _BROWN),
        Algorithm("dcfr", _family(DiscountedRegretMatching(1.5, 0.0)), 2.0, _BROWN),
        Algorithm("dcfr+", _family(DiscountedRegretMatching(1.5, -math.inf)), 4.0, _XU),
        Algorithm("pcfr", _family(RegretMatching(), 1.0), 2.0, _FARINA),
        Algorithm("pcfr+", _family(RegretMatchingPlus(), 1.0), 2.0, _FARINA),
        Algorithm("pdcfr+", _family(DiscountedRegretMatching(2.3, -math.inf), 1.0), 5.0, _XU),
        # With alpha = 2 the prediction has weight 1 / (1 + alpha).
        Algorithm("sapcfr+", _family(RegretMatchingPlus(), 1 / 3), 2.0, _MENG),
        # The prediction weight of Meng et al., which they use in PCFR+, in the algorithm of Xu et al.; see docs/variants.md.
        Algorithm("sapdcfr+", _family(DiscountedRegretMatching(2.3, -math.inf), 1 / 3), 5.0, f"{_MENG}; {_XU}"),
        *_rows_with_schedules(),
        *_adaptive_rows(),
        *_rows_that_take_steps(),
        Algorithm("cfr-br", _family(RegretMatching()), 0.0, _JOHANSON, engine=BEST_RESPONSES),
        _recommended_row(),
    )
}


def algorithm_of(what: str | Algorithm | Any) -> Algorithm:
    """The algorithm of a name, of "module:name" or of a rule.

    Args:
      what: a name in `ALGORITHMS`; the place "module:name" of a rule or an `Algorithm`, which is imported; a rule; or an
        `Algorithm`.

    Raises:
      TypeError: `what` is none of these.
      ValueError: an unknown name, or a module or a name in it that does not exist.
    """
    if isinstance(what, str):
        return algorithm_of(imported(what)) if ":" in what else named(what)
    if isinstance(what, Algorithm):
        return what
    if isinstance(what, CompiledRule | DiscountSchedule) and not isinstance(what, type):
        rule = checked_rule(what)
        return Algorithm(rule.name, rule, averaging_power=0.0, source="user's rule")
    raise TypeError(
        f"expected the name of an algorithm, an Algorithm or a rule, got {what!r}; for Python minimizers see "
        "Solver.of_minimizers"
    )


def named(name: str) -> Algorithm:
    """The row of the table with this name.

    Raises:
      ValueError: there is none.
    """
    if name == "lp":
        raise ValueError("lp is a linear program, without iterations: use solve_exactly(game), or --algorithm=lp in a command")
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; choose one of {', '.join(ALGORITHMS)}, or a rule as 'module:name'")
    return ALGORITHMS[name]


def imported(place: str) -> Any:
    """Imports "module:name".

    Raises:
      ValueError: the module cannot be imported, or has no such name.
    """
    module_name, _, name = place.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), *name.split(".")]):
        raise ValueError(f"{place!r} is not of the form module:name")
    try:
        value: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ValueError(f"cannot import {module_name!r} for {place!r}: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{place!r}: {module_name} has no {name}")
        value = getattr(value, part)
    return value
