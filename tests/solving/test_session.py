"""What sessions can do, and that they are asked instead of told apart."""

import ast
import copy
import inspect
import pickle

import numpy as np
import pyspiel
import pytest
from repository import ROOT

from spiel_cfrplus import (
    ALGORITHMS,
    Averaging,
    CFRPlusSolver,
    PlayRecorder,
    Solver,
    StrategyProfile,
    compile_game,
    make_solver,
    solver_table,
)
from spiel_cfrplus.regret_minimizers import CFR, RegretMatching, RegretMatchingPlus
from spiel_cfrplus.regret_minimizers.regret_matching import as_local_rule
from spiel_cfrplus.solving import compiled_self_play
from spiel_cfrplus.solving.best_response_play import BestResponsePlay
from spiel_cfrplus.solving.compiled_self_play import CompiledSelfPlay
from spiel_cfrplus.solving.self_play import SelfPlay
from spiel_cfrplus.solving.session import Feature, Session
from spiel_cfrplus.solving.warm_start import warm_started

KUHN = compile_game(pyspiel.load_game("kuhn_poker"))
SESSIONS = {
    **{name: lambda name=name: make_solver(name, KUHN).self_play for name in ALGORITHMS},
    "recorded": lambda: make_solver("cfr", KUHN, alternating=False, record_regrets=True).self_play,
    "of the user": lambda: SelfPlay(KUHN, [CFR(treeplex) for treeplex in KUHN.treeplexes]),
    "best responses": lambda: BestResponsePlay(KUHN, [CFR(treeplex) for treeplex in KUHN.treeplexes]),
}
every_session = pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)


@every_session
def test_every_session_follows_the_protocol(make):
    session = make()
    names = [*Session.__annotations__, *(name for name in vars(Session) if not name.startswith("_"))]
    assert [name for name in names if not hasattr(session, name)] == []
    for name, method in vars(Session).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            theirs = inspect.signature(getattr(session, name)).parameters
            assert list(theirs) == list(inspect.signature(method).parameters)[1:], name
    session.run(2)
    assert session.iteration == 2
    for array in (session.current_policy(), session.average_policy(), *session.tables()):
        assert array.shape == (KUHN.num_sequences,)


@every_session
def test_what_is_refused_raises_and_what_is_not_works(make):
    session = make()
    session.run(3)
    uses = {
        Feature.CHECKPOINT: lambda: (session.options(), session.load_state_dict(session.state_dict())),
        Feature.REGRETS: session.regrets,
        Feature.CCE: session.cce_gap,
        Feature.JOINT_PLAY: lambda: PlayRecorder(Solver.of_session(session, "any")),
        Feature.CUMULATIVE_REGRETS: lambda: solver_table(Solver.of_session(session, "any"))["cumulative_regret"],
    }
    for feature, use in uses.items():
        if reason := session.refusal(feature):
            with pytest.raises((KeyError, TypeError, ValueError)) as refused:
                use()
            assert reason in str(refused.value)
        else:
            use()
    fresh, uniform = make(), StrategyProfile.uniform(KUHN)
    if reason := fresh.refusal(Feature.WARM_START):
        with pytest.raises(TypeError) as refused:
            warm_started(fresh, uniform, 5)
        assert reason in str(refused.value)
    else:
        assert warm_started(fresh, uniform, 5).iteration == 5


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_an_algorithm_refuses_all_its_sessions_refuse(name):
    session = make_solver(name, KUHN).self_play
    for feature in Feature:
        if reason := ALGORITHMS[name].refusal(feature):
            assert session.refusal(feature) == reason


# Sessions of a user's own class.


class Colder(CompiledSelfPlay):
    """Has an argument, an attribute and an update of its own: everything is learned twice."""

    def __init__(self, temperature):
        super().__init__(KUHN, as_local_rule(RegretMatchingPlus()), Averaging(1), True)
        self.temperature = temperature

    def run(self, num_iterations):
        super().run(2 * num_iterations)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_of_a_session_of_ones_own_are_of_its_class(again):
    session = Colder(0.5)
    session.run(3)
    twin = again(session)
    assert (type(twin), twin.temperature, twin.iteration) == (Colder, 0.5, 6)
    for each in (session, twin):
        each.run(2)
    assert twin.iteration == 10
    np.testing.assert_array_equal(twin.average_policy(), session.average_policy())


def test_a_session_of_ones_own_is_not_taken_for_the_algorithm(tmp_path):
    solver = CFRPlusSolver(KUHN)
    solver.self_play = Colder(0.5)
    reason = "Colder may override the update"
    for feature in (Feature.CHECKPOINT, Feature.WARM_START, Feature.THEOREM_5, Feature.CFR_PLUS_BOUND):
        assert solver.refusal(feature) == reason
    with pytest.raises(TypeError, match=f"cannot save cfr\\+: {reason}; pickle this one instead"):
        solver.save(tmp_path / "never_written.npz")
    with pytest.raises(TypeError, match=rf"cannot warm-start cfr\+: {reason}"):
        solver.warm_start(StrategyProfile.uniform(KUHN), 5)
    assert list(tmp_path.iterdir()) == []


def test_every_attribute_of_a_session_is_known_as_such():
    session = CompiledSelfPlay(KUHN, as_local_rule(RegretMatching()), Averaging(), True)
    assert sorted(vars(session)) == sorted(compiled_self_play._ATTRIBUTES)


def test_no_module_asks_what_kind_of_session_it_has():
    kinds = {"SelfPlay", "CompiledSelfPlay", "CompiledBestResponsePlay", "BestResponsePlay", "Session"}
    asked = []
    for path in (ROOT / "spiel_cfrplus").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                asked += [(path.name, node.lineno)] if names & kinds else []
    assert asked == []
