"""Theorems about CFR and CFR+, measured during a run.

`TheoryChecks` runs a solver or other self-play one iteration at a time, reads its tables before and after, and measures by how
much each statement holds: its *slack*, in game units. The iterations are those of the session itself.

| statement        | says                                                                                    |
|------------------|-----------------------------------------------------------------------------------------|
| `LEMMA_2`        | an infostate with a positive stored value always has one; it never returns to uniform   |
| `THEOREM_5`      | sigma^{t+1} . v^t >= sigma^t . v^t at every infostate, with the values of the update    |
| `THEOREM_6`      | a player's update lowers none of its counterfactual values against the same opponents   |
| `IDENTITY`       | NashConv = r_0 + r_1 - mean improvement                                                 |
| `CFR_PLUS_BOUND` | NashConv <= 2 (J_0 + J_1) L sqrt(k / t)                                                 |
| `THEOREM_L8_2`   | for every player, regret <= sum over infostates of max(0, local regret)                 |

The first three are measured after every update (see `monotone_updates`), the others when a report is requested. NashConv is
that of the average policy. r_p is player p's average regret with the weights of the average; with alternating updates,

    r_0 = max_x u_0(x, mean of sigma_1^i) - mean of u_0(sigma_0^i, sigma_1^i)          i = 0 .. t-1
    r_1 = max_y u_1(mean of sigma_0^{i+1}, y) - mean of u_1(sigma_0^{i+1}, sigma_1^i)
    mean improvement = mean of u_0(sigma_0^{i+1}, sigma_1^i) - u_0(sigma_0^i, sigma_1^i)

and with simultaneous updates, r_1 is like r_0 and the improvement is 0. J_p is the number of player p's infostates, L the range
of the utilities, k the largest number of actions; the bound is for regret matching+ and linear weights.

>>> import pyspiel
>>> from spiel_cfrplus import CFRPlusSolver
>>> checks = TheoryChecks(CFRPlusSolver(pyspiel.load_game("kuhn_poker")))
>>> checks.run(100)
>>> for finding in checks.report():
...     print(finding.statement.name, finding.applies, finding.slack > -1e-12)
lemma_2 True True
theorem_5 True True
theorem_6 True True
identity True True
cfr_plus_bound True True
theorem_l8_2 True True
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.analysis import monotone_updates
from spiel_cfrplus.analysis.monotone_updates import Update, at_infostates
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, Treeplex
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.solving.session import Feature, Session

# Bound on the rounding error of averages over all iterations, relative to the summed magnitudes.
_ROUNDING_OF_MEANS = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement:
    """By how much a statement holds, at one or several places.

    Attributes:
      slack: float64, negative where it fails, infinite where it says nothing.
      rounding: float64 of the same shape, by how much rounding may make the slack negative.
      quantities: the present values of the compared quantities, in game units.
    """

    slack: np.ndarray
    rounding: np.ndarray
    quantities: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement that a paper proves.

    Attributes:
      name: an identifier.
      claim: the statement in words.
      source: the paper and its number there.
    """

    name: str
    claim: str
    source: str


@dataclasses.dataclass(frozen=True)
class UpdateStatement(Statement):
    """A statement about every update of a player.

    Attributes:
      feature: the feature that a session must have for it.
      slack: measures slack and rounding of an update, one number for each infostate or each sequence.
    """

    feature: Feature
    slack: Callable[[Update], tuple[np.ndarray, np.ndarray]]

    def refusal(self, run: Run) -> str:
        """Why the statement does not apply to an update of the run so far; empty if it does."""
        return run.refusals[self.feature]

    def measure(self, update: Update) -> Measurement:
        """By how much it holds for an update."""
        return Measurement(*self.slack(update))


@dataclasses.dataclass(frozen=True)
class RunStatement(Statement):
    """A statement about a run from its beginning.

    Attributes:
      refusal: why the statement does not apply to a run; empty if it does.
      measure: by how much it holds, after at least one iteration.
      is_per_player: whether it has one slack for each player.
    """

    refusal: Callable[[Run], str]
    measure: Callable[[Run], Measurement]
    is_per_player: bool = False


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of the checks of one statement.

    Attributes:
      statement: the statement.
      slack: the smallest since the checks began, in game units; for the identity, minus the difference of its sides; None if it
        has not been measured yet or the statement does not apply.
      iteration, player, infostate: the place of this slack; None if it concerns no single player or the start of the game.
      measured: the present values of the quantities that the statement compares, in game units.
      reason: why the statement does not apply to this run; empty if it does.
    """

    statement: Statement
    slack: float | None = None
    iteration: int | None = None
    player: int | None = None
    infostate: str | None = None
    measured: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def applies(self) -> bool:
        return not self.reason

    @property
    def verdict(self) -> str:
        """The result in words."""
        if self.reason:
            return f"does not apply: {self.reason}"
        if self.slack is None:
            return "not measured yet"
        measured = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in self.measured.items())
        slack = f"slack {self.slack:.3g}{self.place}"
        return f"{slack} ({measured})" if measured else slack

    @property
    def place(self) -> str:
        """The place of the smallest slack, in words."""
        infostate = "" if self.infostate is None else f" at infostate {self.infostate!r}"
        player = "" if self.player is None else f" of player {self.player}"
        return f"{infostate}{player} in iteration {self.iteration}"

    def __str__(self) -> str:
        return f"{self.statement.source}, {self.statement.claim}: {self.verdict}"


class TheoryViolationError(RuntimeError):
    """Raised when a statement fails by more than rounding.

    Attributes:
      finding: the statement, the place and the slack.
    """

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


class Account:
    """One player's sums over all updates.

    Attributes:
      treeplex: the player's treeplex.
      summed: float64 (J,), magnitudes of all terms of the stored values.
      utility, cumulative_value: sums of gradients, float64 (S,), and of the values of the strategies.
      local_regrets: float64 (S,), summed regrets at each infostate.
      mean_utility, mean_value, mean_improvement: averages with the weights of the average policy.
    """

    def __init__(self, treeplex: Treeplex, table: np.ndarray):
        self.treeplex = treeplex
        self.summed = at_infostates(treeplex, np.maximum, np.abs(table))
        self.utility, self.local_regrets, self.mean_utility = (np.zeros(treeplex.num_sequences) for _ in range(3))
        self.cumulative_value = self.mean_value = self.mean_improvement = 0.0

    def enter(self, update: Update, share: float) -> None:
        """Adds an update; `share` is its weight divided by the sum of the weights so far."""
        value = update.values[EMPTY_SEQUENCE]
        self.summed += update.largest_magnitudes
        self.utility += update.gradient
        self.cumulative_value += value
        self.local_regrets[1:] += update.values[1:] - update.expected_values[self.treeplex.decision_point_of[1:]]
        self.mean_utility += share * (update.gradient - self.mean_utility)
        self.mean_value += share * (value - self.mean_value)
        self.mean_improvement += share * (update.new_values[EMPTY_SEQUENCE] - value - self.mean_improvement)

    def average_regret(self) -> float:
        """r_p."""
        return float(self.treeplex.best_value(self.mean_utility) - self.mean_value)

    def regret(self) -> float:
        """The regret of the whole strategy, summed over iterations."""
        return float(self.treeplex.best_value(self.utility) - self.cumulative_value)

    def positive_local_regrets(self) -> float:
        """The sum over infostates of the positive part of the local regret."""
        return float(np.maximum(at_infostates(self.treeplex, np.maximum, self.local_regrets), 0.0).sum())


class Run:
    """The iterations of a session since the checks began: the sums from which statements about a run are measured.

    Attributes:
      session: the session.
      begun: its iteration when the checks began.
      accounts: one for each player.
      total_weight: the sum of the weights of the average.
      from_zero: whether the stored values were zeros when the checks began.
      refusals: for each feature that an `UpdateStatement` needs, why an update so far did not have it; empty if all had it.
      largest_return: the largest absolute return of the game.
    """

    def __init__(self, session: Session):
        """Initializes the sums."""
        self.session = session
        self.begun = session.iteration
        self.total_weight = 0.0
        self.largest_return = float(np.abs(session.game.tree.returns).max())
        self._nash_conv = -1, math.nan  # the iteration in which it was computed last, and its value
        self.refusals = {statement.feature: session.refusal(statement.feature) for statement in UPDATE_STATEMENTS}
        tables = _of_players(session, session.tables().cumulative_regrets)
        self.from_zero = not any(table.any() for table in tables)
        self.accounts = [Account(*pair) for pair in zip(session.game.treeplexes, tables, strict=True)]

    @property
    def num_iterations(self) -> int:
        """Iterations since the checks began."""
        return self.session.iteration - self.begun

    def begin_iteration(self, weight: float) -> float:
        """Adds the last iteration, with its weight in the average; returns the weight divided by the sum of all weights."""
        self.total_weight += weight
        for feature, reason in self.refusals.items():
            self.refusals[feature] = reason or self.session.refusal(feature)
        return weight / self.total_weight if weight > 0 else 0.0

    def nash_conv(self) -> float:
        """NashConv of the average policy, in game units, without clipping gains at zero, so that it can be negative."""
        session = self.session
        if self._nash_conv[0] != session.iteration:
            evaluation = evaluate(session.game, StrategyProfile(session.game, session.average_policy()))
            gains = evaluation.best_response_values - evaluation.values
            self._nash_conv = session.iteration, float(gains.sum())
        return self._nash_conv[1]


# The statements about a run.


def _identity_refusal(run: Run) -> str:
    session = run.session
    if not session.game.is_two_player_constant_sum:
        return "the game does not have two players and a constant sum"
    if session.averaging.first_iterate(2, session.alternating).tolist() != [int(session.alternating), 0]:
        return "the averages do not pair strategies that were played against each other"
    if session.averaging.only_last:
        return "the last strategies are not averaged"
    if run.begun > 0:
        return "the run began before the checks"
    if run.num_iterations > 0 and run.total_weight == 0:
        return "nothing has been averaged yet"
    return ""


def _measure_identity(run: Run) -> Measurement:
    nash_conv = run.nash_conv()
    regrets = [account.average_regret() for account in run.accounts]
    improvement = run.accounts[0].mean_improvement if run.session.alternating else 0.0
    difference = nash_conv - (sum(regrets) - improvement)
    sums = run.session.game.tree.returns.sum(axis=1)
    rounding = _ROUNDING_OF_MEANS * run.largest_return + np.ptp(sums)
    quantities = {"nash_conv": nash_conv} | {f"regret_{player}": regret for player, regret in enumerate(regrets)}
    quantities |= {"mean_improvement": float(improvement)}
    return Measurement(np.array([0.0 - abs(difference)]), np.array([rounding]), quantities)


def _bound_refusal(run: Run) -> str:
    if reason := _identity_refusal(run) or run.session.refusal(Feature.CFR_PLUS_BOUND):
        return reason
    if not run.from_zero:
        return "the stored values did not start at zero"
    iterations = np.arange(1, run.session.iteration + 1)
    weights = run.session.averaging.weights(iterations)
    if (weights != weights[:1] * iterations).any():
        return "it is proved for averages with linear weights"
    return ""


def _measure_bound(run: Run) -> Measurement:
    game, nash_conv = run.session.game, run.nash_conv()
    most_actions = max(np.diff(treeplex.sequence_start).max(initial=1) for treeplex in game.treeplexes)
    utility_range = float(np.ptp(game.tree.returns, axis=0).max())
    # Every tail of instantaneous regrets sums to at most q^t <= L sqrt(k t), and t tails to the linearly weighted regret.
    bound = 2 * game.num_infostates * utility_range * math.sqrt(most_actions / run.session.iteration)
    rounding = _ROUNDING_OF_MEANS * run.largest_return
    return Measurement(np.array([bound - nash_conv]), np.array([rounding]), {"nash_conv": nash_conv, "bound": bound})


def _measure_local_regrets(run: Run) -> Measurement:
    whole = np.array([account.regret() for account in run.accounts]) / run.num_iterations
    local = np.array([account.positive_local_regrets() for account in run.accounts]) / run.num_iterations
    added = np.array([account.summed.sum() for account in run.accounts]) / run.num_iterations
    quantities = {f"regret_{player}": float(regret) for player, regret in enumerate(whole)}
    quantities |= {f"local_regrets_{player}": float(regret) for player, regret in enumerate(local)}
    return Measurement(local - whole, _ROUNDING_OF_MEANS * (run.largest_return + added), quantities)


def _always(run: Run) -> str:
    return ""


# All statements, in the order of reports.

LEMMA_2 = UpdateStatement(
    "lemma_2",
    "positive stored values never vanish",
    "CFR+ paper, Lemma 2 and corollary",
    Feature.LEMMA_2,
    monotone_updates.lemma_2,
)
THEOREM_5 = UpdateStatement(
    "theorem_5",
    "no update lowers the value at an infostate",
    "CFR+ paper, Theorem 5",
    Feature.THEOREM_5,
    monotone_updates.theorem_5,
)
THEOREM_6 = UpdateStatement(
    "theorem_6",
    "no update lowers a counterfactual value of the player",
    "CFR+ paper, Theorem 6",
    Feature.THEOREM_6,
    monotone_updates.theorem_6,
)
IDENTITY = RunStatement(
    "identity",
    "NashConv is the sum of the regrets minus the mean improvement",
    "CFR+ paper, section 3",
    _identity_refusal,
    _measure_identity,
)
CFR_PLUS_BOUND = RunStatement(
    "cfr_plus_bound",
    "NashConv is within the bound of CFR+",
    "CFR+ paper, section 3",
    _bound_refusal,
    _measure_bound,
)
THEOREM_L8_2 = RunStatement(
    "theorem_l8_2",
    "regret is at most the sum of the positive local regrets",
    "MIT 6.7980, Theorem L8.2",
    _always,
    _measure_local_regrets,
    is_per_player=True,
)
UPDATE_STATEMENTS: tuple[UpdateStatement, ...] = (LEMMA_2, THEOREM_5, THEOREM_6)
RUN_STATEMENTS: tuple[RunStatement, ...] = (IDENTITY, CFR_PLUS_BOUND, THEOREM_L8_2)


class TheoryChecks:
    """Runs a session and measures the statements; the report says which statements do not apply.

    Attributes:
      session: the self-play; only the checks may run it.
    """

    def __init__(self, session: Any):
        """Initializes the checks; does not iterate.

        Args:
          session: a solver, or its session. Statements about a whole run do not apply if it has already begun.

        Raises:
          TypeError: it is neither, or the players do not play against each other, as in CFR-BR, or the solver overrides `run`.
        """
        if not callable(getattr(session, "refusal", None)):
            raise TypeError(f"expected a solver, such as CFRPlusSolver(game), got {session!r}")
        if reason := session.refusal(Feature.THEORY):
            raise TypeError(reason)
        self.session: Session = getattr(session, "self_play", session)
        game = self.session.game
        self._run = Run(self.session)
        self._seen = self.session.iteration
        self._absolute = dataclasses.replace(game, payoffs=frozen(np.abs(game.payoffs), np.float64))
        self._tables = self.session.tables()
        self._tie_tolerances = [
            tie_tolerance[treeplex.sequence_start[:-1]]
            for treeplex, tie_tolerance in zip(
                game.treeplexes, _of_players(self.session, self._tables.tie_tolerance), strict=True
            )
        ]
        self._least: dict[Statement, Finding] = {}

    def run(self, num_iterations: int) -> None:
        """Does `num_iterations` more, with the same doubles as the session's own `run`.

        Raises:
          TheoryViolationError: a statement about an update fails; the iteration has been done.
          TypeError, ValueError: not an integer, or negative; or the session was run by other means.
        """
        for _ in range(checked_count(num_iterations)):
            self._iterate()

    def report(self) -> tuple[Finding, ...]:
        """Measures the statements about the whole run, and returns the results of all statements since the checks began.

        Raises:
          TheoryViolationError: one of them fails.
          ValueError: the session was run by other means.
        """
        self._check_seen()
        of_updates = [self._finding(statement, statement.refusal(self._run), {}) for statement in UPDATE_STATEMENTS]
        return (*of_updates, *map(self._judge_run, RUN_STATEMENTS))

    def _finding(self, statement: Statement, reason: str, quantities: Mapping[str, float]) -> Finding:
        least = Finding(statement, reason=reason) if reason else self._least.get(statement, Finding(statement))
        return dataclasses.replace(least, measured=quantities)

    # One iteration.

    def _iterate(self) -> None:
        self._check_seen()
        self.session.run(1)
        self._seen = self.session.iteration
        (weight,) = self.session.averaging.weights(np.array([self._seen]))
        share = self._run.begin_iteration(float(weight))
        for update in self._updates():
            self._run.accounts[update.treeplex.player].enter(update, share)
            self._judge_update(update)

    def _updates(self) -> Iterator[Update]:
        """The updates of the players in the last iteration."""
        game, old = self.session.game, self._tables
        self._tables = self.session.tables()
        old_policies, old_tables, new_policies, new_tables = (
            _of_players(self.session, vector)
            for vector in (
                old.policy,
                old.cumulative_regrets,
                self._tables.policy,
                self._tables.cumulative_regrets,
            )
        )
        met = [treeplex.sequence_form(policy) for treeplex, policy in zip(game.treeplexes, old_policies, strict=True)]
        for player, account in enumerate(self._run.accounts):
            yield Update(
                treeplex=account.treeplex,
                old_policy=old_policies[player],
                new_policy=new_policies[player],
                old_table=old_tables[player],
                new_table=new_tables[player],
                gradient=game.payoff_gradient(player, met),
                magnitude=self._absolute.payoff_gradient(player, met),
                summed_before=account.summed.copy(),
                tie_tolerance=self._tie_tolerances[player],
            )
            if self.session.alternating:
                met[player] = account.treeplex.sequence_form(new_policies[player])

    def _check_seen(self) -> None:
        if self.session.iteration != self._seen:
            raise ValueError(
                f"the session is at iteration {self.session.iteration}, the checks are at {self._seen}: the session was run by "
                "other means; make new TheoryChecks, and call their run()"
            )

    def _judge_update(self, update: Update) -> None:
        treeplex = update.treeplex
        for statement in UPDATE_STATEMENTS:
            if statement.refusal(self._run):
                continue
            measurement = statement.measure(update)
            per_sequence = len(measurement.slack) == treeplex.num_sequences

            def place(index: int, per_sequence: bool = per_sequence) -> tuple[int, str | None]:
                point = int(treeplex.decision_point_of[index]) if per_sequence else index
                return treeplex.player, treeplex.infostate_keys[point] if point >= 0 else None

            self._judge(statement, measurement, place)

    def _judge_run(self, statement: RunStatement) -> Finding:
        reason = statement.refusal(self._run)
        if self._run.num_iterations == 0:
            return self._finding(statement, reason, {})
        measurement = statement.measure(self._run)
        if not reason:
            self._judge(statement, measurement, _one_player if statement.is_per_player else _no_player)
        return self._finding(statement, reason, measurement.quantities)

    def _judge(
        self, statement: Statement, measurement: Measurement, place: Callable[[int], tuple[int | None, str | None]]
    ) -> None:
        """Raises an error if a slack is negative by more than rounding; stores the smallest slack."""
        slack = measurement.slack
        if len(slack) == 0:
            return
        violated = np.flatnonzero(~(slack >= -measurement.rounding))
        # Report the violation furthest down: the values of parents, which come first, include those of their descendants.
        worst = int(violated[-1] if len(violated) else np.argmin(slack))
        finding = Finding(statement, float(slack[worst]), self._seen, *place(worst))
        if len(violated):
            raise TheoryViolationError(finding)
        least = self._least.get(statement)
        if math.isfinite(slack[worst]) and (least is None or least.slack is None or slack[worst] < least.slack):
            self._least[statement] = finding


def _of_players(session: Session, vector: np.ndarray) -> list[np.ndarray]:
    """The players' parts of a vector over all sequences."""
    return [vector[own] for own in session.game.player_slices]


def _one_player(index: int) -> tuple[int | None, str | None]:
    return index, None


def _no_player(index: int) -> tuple[int | None, str | None]:
    return None, None
