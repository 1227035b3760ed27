"""The theorems behind CFR and CFR+, measured while they run.

`TheoryChecks` runs a solver or other self-play one iteration at a time, looks at it before and after, and measures by how much
each statement holds: its *slack*, in game units. The iterations are the session's own; what is measured is what was played.

| statement        | says                                                                                    |
|------------------|-----------------------------------------------------------------------------------------|
| `LEMMA_2`        | an infostate with a positive stored value always has one; it never returns to uniform   |
| `THEOREM_5`      | sigma^{t+1} . v^t >= sigma^t . v^t at every infostate, with the values of the update    |
| `THEOREM_6`      | a player's update lowers none of its counterfactual values against the same opponents   |
| `IDENTITY`       | NashConv = r_0 + r_1 - mean improvement                                                 |
| `CFR_PLUS_BOUND` | NashConv <= 2 (J_0 + J_1) L sqrt(k / t)                                                 |
| `THEOREM_L8_2`   | for every player, regret <= sum over infostates of max(0, local regret)                 |

The first three are measured after every update (see `monotone_updates`), the others when a report is asked for. NashConv is
that of the average policy. r_p is player p's average regret with the weights of the average; where updates alternate,

    r_0 = max_x u_0(x, mean of sigma_1^i) - mean of u_0(sigma_0^i, sigma_1^i)          i = 0 .. t-1
    r_1 = max_y u_1(mean of sigma_0^{i+1}, y) - mean of u_1(sigma_0^{i+1}, sigma_1^i)
    mean improvement = mean of u_0(sigma_0^{i+1}, sigma_1^i) - u_0(sigma_0^i, sigma_1^i)

and where they do not, r_1 is like r_0 and the improvement is 0. J_p counts player p's infostates, L is the range of the
utilities, k the largest number of actions; the bound is for regret matching+ and linear weights.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cfrplus._utils.arrays import frozen
from spiel_cfrplus._utils.validation import checked_count
from spiel_cfrplus.analysis.monotone_updates import Update, at_infostates, lemma_2, theorem_5, theorem_6
from spiel_cfrplus.game.treeplex import EMPTY_SEQUENCE, Treeplex
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.regret_minimizers.cfr import CFR
from spiel_cfrplus.regret_minimizers.regret_matching import RegretMatchingRule
from spiel_cfrplus.solving.best_response_play import BestResponsePlay
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.solvers import Solver

# What float64 may do to averages over all iterations, relative to the magnitudes added up.
_ROUNDING_OF_MEANS = 1e-10

_Measure = tuple[dict[str, float], np.ndarray, np.ndarray]  # what is compared, its slack, and the rounding to be granted


@dataclasses.dataclass(frozen=True)
class Statement:
    """What a paper proves.

    Attributes:
      name: for programs.
      claim: for people.
      source: where it is proved.
    """

    name: str
    claim: str
    source: str


LEMMA_2 = Statement("lemma_2", "positive stored values never vanish", "CFR+ paper, Lemma 2 and corollary")
THEOREM_5 = Statement("theorem_5", "no infostate earns less after its update", "CFR+ paper, Theorem 5")
THEOREM_6 = Statement("theorem_6", "no counterfactual value falls by the player's own update", "CFR+ paper, Theorem 6")
IDENTITY = Statement("identity", "NashConv is the regrets minus the mean improvement", "CFR+ paper, section 3")
CFR_PLUS_BOUND = Statement("cfr_plus_bound", "NashConv is within the bound of CFR+", "CFR+ paper, section 3")
THEOREM_L8_2 = Statement("theorem_l8_2", "regret is at most the positive local regrets", "MIT 6.7980, Theorem L8.2")

_MONOTONE = {LEMMA_2: lemma_2, THEOREM_5: theorem_5, THEOREM_6: theorem_6}


@dataclasses.dataclass(frozen=True)
class Finding:
    """How a statement has fared.

    Attributes:
      statement: the statement.
      slack: the least since the checks began, in game units, minus the difference of the sides for the identity; None if there
        was no case yet or the statement does not apply.
      iteration, player, infostate: where that was; None if it is about nobody in particular, or the start of the game.
      measured: the quantities that the statement compares, as they are now, in game units.
      reason: why the statement says nothing about this run; empty if it does.
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
        """All but the statement, for people."""
        if self.reason:
            return f"does not apply: {self.reason}"
        if self.slack is None:
            return "no case yet"
        measured = ", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in self.measured.items())
        return f"slack {self.slack:.3g}{self.place}{measured and f' ({measured})'}"

    @property
    def place(self) -> str:
        """Where the least slack was, for people."""
        infostate = "" if self.infostate is None else f" at infostate {self.infostate!r}"
        player = "" if self.player is None else f" of player {self.player}"
        return f"{infostate}{player} in iteration {self.iteration}"

    def __str__(self) -> str:
        return f"{self.statement.source}, {self.statement.claim}: {self.verdict}"


class TheoryViolationError(RuntimeError):
    """A statement failed by more than rounding explains.

    Attributes:
      finding: which one, where, and by how much.
    """

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


class _Account:
    """One player's sums over all updates.

    Attributes:
      treeplex: the player's.
      summed: float64 (J,), magnitudes of all that was added up in the stored values.
      utility, cumulative_value: sums of gradients, float64 (S,), and of what the strategies earned.
      local_regrets: float64 (S,), sums at each infostate.
      mean_utility, mean_value, mean_improvement: averages with the weights of the average policy.
    """

    def __init__(self, treeplex: Treeplex, table: np.ndarray):
        self.treeplex = treeplex
        self.summed = at_infostates(treeplex, np.maximum, np.abs(table))
        self.utility, self.local_regrets, self.mean_utility = (np.zeros(treeplex.num_sequences) for _ in range(3))
        self.cumulative_value = self.mean_value = self.mean_improvement = 0.0

    def enter(self, update: Update, share: float) -> None:
        """Takes in an update; `share` is its weight over all weights so far."""
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
        """The regret of the whole, summed over iterations."""
        return float(self.treeplex.best_value(self.utility) - self.cumulative_value)

    def positive_local_regrets(self) -> float:
        """The sum over infostates of the positive part of the local regret."""
        return float(np.maximum(at_infostates(self.treeplex, np.maximum, self.local_regrets), 0.0).sum())


class TheoryChecks:
    """Runs a session and measures the statements; those that do not apply to it are reported as such.

    Attributes:
      session: the self-play; nobody else may run it meanwhile.
    """

    def __init__(self, session: Solver | SelfPlay | CompiledSelfPlay):
        """Begins the accounts; nothing is played.

        Args:
          session: a solver, or self-play of any minimizers. Statements about the whole of a run do not apply if it has begun.

        Raises:
          TypeError: it is neither, or the players do not meet, as in CFR-BR.
        """
        self_play = session.self_play if isinstance(session, Solver) else session
        if not isinstance(self_play, SelfPlay | CompiledSelfPlay | BestResponsePlay):
            raise TypeError(f"expected a solver, such as CFRPlusSolver(game), got {session!r}")
        if isinstance(self_play, BestResponsePlay):
            raise TypeError("the statements are about players who meet each other, not about CFR-BR")
        self.session: SelfPlay | CompiledSelfPlay = self_play
        game = self.session.game
        self._begun = self._seen = self.session.iteration
        self._absolute = dataclasses.replace(game, payoffs=frozen(np.abs(game.payoffs), np.float64))
        self._largest_return = float(np.abs(game.tree.returns).max())
        self._policies, self._tables, tolerances = self._look()
        self._tie_tolerances = [
            tie_tolerance[treeplex.sequence_start[:-1]]
            for treeplex, tie_tolerance in zip(game.treeplexes, tolerances, strict=True)
        ]
        self._from_zero = not any(table.any() for table in self._tables)
        self._accounts = [_Account(*pair) for pair in zip(game.treeplexes, self._tables, strict=True)]
        self._total_weight = 0.0
        self._not_monotone = _reason_against_monotony(self.session, np.array([1]))
        self._least: dict[Statement, Finding] = {}

    def run(self, num_iterations: int) -> None:
        """Plays `num_iterations` more, to the same doubles as the session's own `run`.

        Raises:
          TheoryViolationError: a statement about an update fails; the iteration has been played.
          TypeError, ValueError: not an integer, or negative; or somebody else has run the session.
        """
        for _ in range(checked_count(num_iterations)):
            self._iterate()

    def report(self) -> tuple[Finding, ...]:
        """Measures the statements about the run as a whole, and tells how all have fared since the checks began.

        Raises:
          TheoryViolationError: one of them fails.
          ValueError: somebody else has run the session.
        """
        self._check_seen()
        reasons = dict.fromkeys(_MONOTONE, self._not_monotone)
        reasons |= {IDENTITY: self._reason_against_identity(), CFR_PLUS_BOUND: self._reason_against_bound(), THEOREM_L8_2: ""}
        measured: dict[Statement, Mapping[str, float]] = {}
        for statement, (quantities, slack, rounding) in self._measure_run().items():
            measured[statement] = quantities
            if not reasons[statement]:
                self._judge(statement, slack, rounding, _one_player if statement is THEOREM_L8_2 else _nobody)
        return tuple(
            dataclasses.replace(
                Finding(statement, reason=reason) if reason else self._least.get(statement, Finding(statement)),
                measured=measured.get(statement, {}),
            )
            for statement, reason in reasons.items()
        )

    # One iteration.

    def _iterate(self) -> None:
        self._check_seen()
        self.session.run(1)
        self._seen = self.session.iteration
        iterations = np.array([self._seen])
        (weight,) = self.session.averaging.weights(iterations)
        self._total_weight += weight
        self._not_monotone = self._not_monotone or _reason_against_monotony(self.session, iterations)
        for update in self._updates():
            account = self._accounts[update.treeplex.player]
            account.enter(update, weight / self._total_weight if weight > 0 else 0.0)
            if not self._not_monotone:
                self._judge_update(update)

    def _updates(self) -> Iterator[Update]:
        """What the iteration just played did to each player."""
        game = self.session.game
        old_policies, old_tables = self._policies, self._tables
        self._policies, self._tables, _ = self._look()
        met = [treeplex.sequence_form(policy) for treeplex, policy in zip(game.treeplexes, old_policies, strict=True)]
        for player, account in enumerate(self._accounts):
            new_policy = self._policies[player]
            yield Update(
                treeplex=account.treeplex,
                old_policy=old_policies[player],
                new_policy=new_policy,
                old_table=old_tables[player],
                new_table=self._tables[player],
                gradient=game.payoff_gradient(player, met),
                magnitude=self._absolute.payoff_gradient(player, met),
                summed_before=account.summed.copy(),
                tie_tolerance=self._tie_tolerances[player],
            )
            if self.session.alternating:
                met[player] = account.treeplex.sequence_form(new_policy)

    def _look(self) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """All players' behavioral policies, stored values, and what these must exceed; zeros where a minimizer shows none."""
        session, slices = self.session, self.session.game.player_slices
        policy = session.current_policy()
        if isinstance(session, CompiledSelfPlay):
            policies, tables, tie_tolerance = (
                [vector[own] for own in slices] for vector in (policy, session.cumulative_regrets(), session.tie_tolerance())
            )
            return policies, tables, tie_tolerance
        policies, tables, tie_tolerance = ([vector[own] for own in slices] for vector in (policy, 0 * policy, 0 * policy))
        for player, minimizer in enumerate(session.minimizers):
            if isinstance(minimizer, CFR):
                # Also what it would do where it never comes.
                policies[player], tables[player] = minimizer.current_policy(), minimizer.cumulative_regrets
                tie_tolerance[player] = minimizer.tie_tolerance
        return policies, tables, tie_tolerance

    def _check_seen(self) -> None:
        if self.session.iteration != self._seen:
            raise ValueError(
                f"the session stands at iteration {self.session.iteration}, and was left at {self._seen}: somebody else has "
                "run it; begin new TheoryChecks, and run it by their run()"
            )

    def _judge_update(self, update: Update) -> None:
        treeplex = update.treeplex

        def place(index: int) -> tuple[int, str | None]:
            point = int(treeplex.decision_point_of[index]) if per_sequence else index
            return treeplex.player, treeplex.infostate_keys[point] if point >= 0 else None

        for statement, measure in _MONOTONE.items():
            slack, rounding = measure(update)
            per_sequence = len(slack) == treeplex.num_sequences
            self._judge(statement, slack, rounding, place)

    def _judge(
        self,
        statement: Statement,
        slack: np.ndarray,
        rounding: np.ndarray,
        place: Callable[[int], tuple[int | None, str | None]],
    ) -> None:
        """Raises if a slack is negative by more than rounding, remembers the least."""
        if len(slack) == 0:
            return
        violated = np.flatnonzero(~(slack >= -rounding))
        # Of violations the one furthest down is named, as parents come first and suffer from what is below them.
        worst = int(violated[-1] if len(violated) else np.argmin(slack))
        finding = Finding(statement, float(slack[worst]), self._seen, *place(worst))
        if len(violated):
            raise TheoryViolationError(finding)
        least = self._least.get(statement)
        if math.isfinite(slack[worst]) and (least is None or least.slack is None or slack[worst] < least.slack):
            self._least[statement] = finding

    # The run as a whole.

    def _measure_run(self) -> dict[Statement, _Measure]:
        num_iterations = self._seen - self._begun
        if num_iterations == 0:
            return {}
        evaluation = evaluate(self.session.game, StrategyProfile(self.session.game, self.session.average_policy()))
        # Unlike the gains, which stop at zero.
        nash_conv = float((evaluation.best_response_values - evaluation.values).sum())
        return {
            IDENTITY: self._measure_identity(nash_conv),
            CFR_PLUS_BOUND: self._measure_bound(nash_conv),
            THEOREM_L8_2: self._measure_local_regrets(num_iterations),
        }

    def _measure_identity(self, nash_conv: float) -> _Measure:
        regrets = [account.average_regret() for account in self._accounts]
        improvement = self._accounts[0].mean_improvement if self.session.alternating else 0.0
        difference = nash_conv - (sum(regrets) - improvement)
        sums = self.session.game.tree.returns.sum(axis=1)
        rounding = _ROUNDING_OF_MEANS * self._largest_return + np.ptp(sums)
        quantities = {"nash_conv": nash_conv} | {f"regret_{player}": regret for player, regret in enumerate(regrets)}
        return quantities | {"mean_improvement": float(improvement)}, np.array([0.0 - abs(difference)]), np.array([rounding])

    def _measure_bound(self, nash_conv: float) -> _Measure:
        game = self.session.game
        most_actions = max(np.diff(treeplex.sequence_start).max(initial=1) for treeplex in game.treeplexes)
        utility_range = float(np.ptp(game.tree.returns, axis=0).max())
        # Every tail of instantaneous regrets sums to at most q^t <= L sqrt(k t), and t tails to the linearly weighted regret.
        bound = 2 * game.num_infostates * utility_range * math.sqrt(most_actions / self._seen)
        rounding = _ROUNDING_OF_MEANS * self._largest_return
        return {"nash_conv": nash_conv, "bound": bound}, np.array([bound - nash_conv]), np.array([rounding])

    def _measure_local_regrets(self, num_iterations: int) -> _Measure:
        whole = np.array([account.regret() for account in self._accounts]) / num_iterations
        local = np.array([account.positive_local_regrets() for account in self._accounts]) / num_iterations
        added = np.array([account.summed.sum() for account in self._accounts]) / num_iterations
        quantities = {f"regret_{player}": float(regret) for player, regret in enumerate(whole)}
        quantities |= {f"local_regrets_{player}": float(regret) for player, regret in enumerate(local)}
        return quantities, local - whole, _ROUNDING_OF_MEANS * (self._largest_return + added)

    def _reason_against_identity(self) -> str:
        session = self.session
        if not session.game.is_two_player_constant_sum:
            return "the game does not have two players and a constant sum"
        if session.averaging.first_iterate(2, session.alternating).tolist() != [int(session.alternating), 0]:
            return "the averages do not pair strategies that met"
        if self._begun > 0:
            return "the run had begun before the checks"
        if self._seen > 0 and self._total_weight == 0:
            return "nothing has been averaged yet"
        return ""

    def _reason_against_bound(self) -> str:
        if reason := self._reason_against_identity() or self._not_monotone:
            return reason
        if not self._from_zero:
            return "the stored values did not start from zero"
        iterations = np.arange(1, self._seen + 1)
        if (_discounts(self.session, iterations) != [1, 0]).any():
            return "it is proved for regret matching+"
        weights = self.session.averaging.weights(iterations)
        if (weights != weights[:1] * iterations).any():
            return "it is proved for averages with linear weights"
        return ""


def _one_player(index: int) -> tuple[int | None, str | None]:
    return index, None


def _nobody(index: int) -> tuple[int | None, str | None]:
    return None, None


def _reason_against_monotony(session: SelfPlay | CompiledSelfPlay, iterations: np.ndarray) -> str:
    """Why Lemma 2 and Theorems 5 and 6 do not speak of such updates, or nothing."""
    if any(not isinstance(minimizer, CFR | CompiledSelfPlay) for minimizer in _minimizers(session)):
        return "not all players are CFR with regret matching"
    if any(not isinstance(minimizer.rule, RegretMatchingRule) for minimizer in _minimizers(session)):
        return "not all players are CFR with regret matching"
    if any(minimizer.rule.prediction_weight for minimizer in _minimizers(session)):
        return "predictive strategies are not matched to the stored values alone"
    if (_discounts(session, iterations)[..., 0] <= 0).any():
        return "positive regrets are discounted to zero"
    return ""


def _discounts(session: SelfPlay | CompiledSelfPlay, iterations: np.ndarray) -> np.ndarray:
    """The factors of all players who are CFR, float64 (n, T, 2)."""
    rules = [m.rule.discounts for m in _minimizers(session) if isinstance(m.rule, RegretMatchingRule)]
    return np.array([rule.discounts(iterations) for rule in rules])


def _minimizers(session: SelfPlay | CompiledSelfPlay) -> Sequence[Any]:
    """The players' minimizers; a compiled session is CFR for all of them."""
    return [session] if isinstance(session, CompiledSelfPlay) else session.minimizers
