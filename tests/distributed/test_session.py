"""Self-play in parts: the same iterates as those of the plain solver on the whole game."""

import games
import numpy as np
import pytest

from spiel_cfrplus import CFRSolver, compile_game, make_solver
from spiel_cfrplus.distributed import DistributedSelfPlay, compile_in_parts
from spiel_cfrplus.regret_minimizers import DiscountedRegretMatching, local_rule
from spiel_cfrplus.solving.averaging import Averaging

ALGORITHMS = ("cfr", "cfr+", "lcfr", "dcfr", "pcfr+", "sapcfr+")
# Two cuts: plies, or None for the automatic cut.
CUTS: dict[str, tuple[int | None, int | None]] = {
    "kuhn_poker": (3, 4),
    "kuhn_poker_3p": (4, 6),
    "leduc_poker": (4, 6),
    "liars_dice_3": (3, 5),
    "goofspiel_3": (2, 3),
    "tiny_hanabi": (3, None),
    "sheriff": (2, None),
    "dark_hex_2": (2, 4),
    "python_kuhn_poker": (3, 4),
    "universal_poker": (4, 6),
    "random_efg": (1, None),
}
# Games in which rounding errors grow more than ten-thousandfold in 50 iterations. The bounds of the others are 1e-12.
CHAOTIC = {"leduc_poker", "liars_dice_3", "universal_poker"}


def by_infostate(session: DistributedSelfPlay, last_iterate: bool = False) -> dict[tuple[int, str], np.ndarray]:
    """The policy of a session of one process, by player and information-state string."""
    found = {}
    top = session.top_policy(last_iterate)
    for treeplex, own in zip(session.game.top.game.treeplexes, session.game.top.game.player_slices, strict=True):
        for point, key in enumerate(treeplex.infostate_keys):
            actions = treeplex.sequences(point)
            found[treeplex.player, key] = top[own][actions.start : actions.stop]
    for part, policies in zip(session.game.players, session.part_policies(last_iterate), strict=True):
        for player, (own, policy) in enumerate(zip(part, policies, strict=True)):
            starts = own.sequence_start - own.sequence_start[0]
            for key, start, stop in zip(own.infostate_keys, starts, starts[1:], strict=False):
                assert (player, key) not in found
                found[player, key] = policy[start:stop]
    return found


def assert_same_play(session: DistributedSelfPlay, solver, tolerance: float, of_policies: float | None = None) -> None:
    """The same policies, values and best responses, up to the tolerance, relative to the largest return."""
    assert session.iteration == solver.iteration
    for last_iterate, profile in ((False, solver.average_profile()), (True, solver.current_profile())):
        policy = by_infostate(session, last_iterate)
        for treeplex, own in zip(solver.game.treeplexes, solver.game.player_slices, strict=True):
            for point, key in enumerate(treeplex.infostate_keys):
                actions = treeplex.sequences(point)
                expected = profile.probabilities[own][actions.start : actions.stop]
                np.testing.assert_allclose(policy.pop((treeplex.player, key)), expected, rtol=0, atol=of_policies or tolerance)
        assert not policy
    evaluation, values = solver.evaluate(), session.evaluate()
    scale = np.abs(solver.game.tree.returns).max()
    np.testing.assert_allclose(values.values, evaluation.values, rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(values.best_response_values, evaluation.best_response_values, rtol=0, atol=tolerance * scale)
    assert values.nash_conv == pytest.approx(evaluation.nash_conv, abs=4 * tolerance * scale)


@pytest.mark.slow
@pytest.mark.parametrize("ply", [0, 1])
@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("name", CUTS)
def test_fifty_iterations_are_those_of_the_plain_solver(name, alternating, ply):
    game = games.GAMES[name]()
    plain, in_parts = compile_game(game), compile_in_parts(game, ply=CUTS[name][ply])
    assert in_parts.num_histories == plain.tree.num_histories
    assert in_parts.cut.num_parts > 1
    for algorithm in ALGORITHMS:
        session = DistributedSelfPlay(in_parts, algorithm, alternating=alternating)
        solver = make_solver(algorithm, plain, alternating=alternating, reduce=False)
        session.run(50)
        solver.run(50)
        if name in CHAOTIC:
            assert_same_play(session, solver, 5e-11, of_policies=5e-8)
        else:
            assert_same_play(session, solver, 1e-12)


@pytest.mark.parametrize(
    ("name", "algorithm", "alternating"),
    [("kuhn_poker_3p", "cfr+", True), ("liars_dice_3", "dcfr", False), ("python_kuhn_poker", "pcfr+", True)],
)
def test_iterations_are_those_of_the_plain_solver(name, algorithm, alternating):
    game = games.GAMES[name]()
    session = DistributedSelfPlay(compile_in_parts(game, num_parts=3), algorithm, alternating=alternating)
    solver = make_solver(algorithm, game, alternating=alternating, reduce=False)
    for num_iterations in (1, 9):
        session.run(num_iterations)
        solver.run(num_iterations)
        assert_same_play(session, solver, 1e-13)


@pytest.mark.parametrize("averaging", ["openspiel", Averaging(2.0, delay=2), Averaging(only_last=True)])
def test_averages_are_those_of_the_plain_solver(kuhn, averaging):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game), "cfr+", averaging=averaging)
    solver = make_solver("cfr+", kuhn, averaging=averaging, reduce=False)
    session.run(7)
    solver.run(7)
    assert_same_play(session, solver, 1e-13)


def test_an_evaluation_does_not_change_iterations(kuhn):
    sessions = [DistributedSelfPlay(compile_in_parts(kuhn.tree.game)) for _ in range(2)]
    for session in sessions:
        session.run(3)
    sessions[0].run(0)
    sessions[0].evaluate()
    sessions[0].evaluate(last_iterate=True)
    for session in sessions:
        session.run(3)
    assert sessions[0].evaluate().nash_conv == sessions[1].evaluate().nash_conv
    np.testing.assert_array_equal(sessions[0].top_policy(), sessions[1].top_policy())


def test_a_session_continues_from_the_states_of_another(kuhn):
    game = compile_in_parts(kuhn.tree.game, num_parts=4)
    undisturbed, first, second = (DistributedSelfPlay(game, "pcfr+") for _ in range(3))
    undisturbed.run(9)
    first.run(4)
    second.load_states(first.top_state(), first.part_states())
    second.run(5)
    for expected, found in zip(
        [undisturbed.top_state(), *undisturbed.part_states()], [second.top_state(), *second.part_states()], strict=True
    ):
        assert expected.keys() == found.keys()
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
    with pytest.raises(ValueError, match="expected arrays"):
        second.load_states(first.top_state(), [])


def test_tie_tolerances_are_those_of_the_whole_game(kuhn):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game, num_parts=4), "cfr")
    top, own = (tables.memory.tie_tolerance for tables in session._tables)
    in_parts = [own[actions] for part in session.game.share.sequences for actions in part]
    tolerances = np.concatenate([top, *in_parts])
    # The numbers of the sequences differ.
    np.testing.assert_allclose(np.sort(tolerances), np.sort(kuhn.tie_tolerance), rtol=1e-12)


def test_algorithms_whose_updates_cannot_be_divided_are_refused(kuhn):
    game = compile_in_parts(kuhn.tree.game)
    with pytest.raises(TypeError, match="cannot be divided"):
        DistributedSelfPlay(game, "dilated_entropy")
    with pytest.raises(TypeError, match="cfr-br"):
        DistributedSelfPlay(game, "cfr-br")


@local_rule(per_action=("sums",))
def follow_sums(point, values, policy, memory, parameters, t):
    """Regret matching without discounts."""
    total = 0.0
    for a in point.actions:
        memory.sums[a] += values[a] - point.value
        total += max(memory.sums[a], 0.0)
    for a in point.actions:
        policy[a] = max(memory.sums[a], 0.0) / total if total > 0.0 else 1.0 / len(point.actions)


def test_rules_of_users_iterate_in_parts(kuhn):
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game), follow_sums, exact_ties=False)
    solver = CFRSolver(kuhn, reduce=False, exact_ties=False)
    session.run(5)
    solver.run(5)
    np.testing.assert_allclose(session.evaluate().values, solver.evaluate().values, atol=1e-12)


def test_discounts_with_other_exponents(kuhn):
    rule = DiscountedRegretMatching(1.2, 0.5)
    session = DistributedSelfPlay(compile_in_parts(kuhn.tree.game), rule)
    solver = make_solver(rule, kuhn, reduce=False)
    session.run(5)
    solver.run(5)
    assert_same_play(session, solver, 1e-13)
