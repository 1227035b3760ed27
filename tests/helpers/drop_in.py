"""Drop-in solvers and the OpenSpiel solvers that they replace."""

import warnings

import numpy as np
import pyspiel

KUHN = pyspiel.load_game("kuhn_poker")


def load(game):
    """Loads a game from its string or by a function of `games`."""
    return game() if callable(game) else pyspiel.load_game(game)


def quietly(solver_type, *arguments, **options):
    """A solver, without the warning about imperfect recall."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return solver_type(*arguments, **options)


def our_tables(solver):
    rows = {key: solver.current_policy().policy_for_key(key) for key in solver.current_policy().state_lookup}
    return {
        key: [
            np.array(list(node.cumulative_regret.values())),
            np.array(list(node.cumulative_policy.values())),
            rows[key][node.legal_actions],
        ]
        for key, node in solver._info_state_nodes.items()
    }


def differing_doubles(ours, theirs):
    assert ours.keys() == theirs.keys()
    return sum(
        np.count_nonzero(our.view(np.int64) != their.view(np.int64))
        for key in ours
        for our, their in zip(ours[key], theirs[key], strict=True)
    )


def assert_same_policies(ours, theirs, num_iterations, tolerance):
    for _ in range(num_iterations):
        ours.evaluate_and_update_policy()
        theirs.evaluate_and_update_policy()
        for our, their in (
            (ours.current_policy(), theirs.current_policy()),
            (ours.average_policy(), theirs.average_policy()),
        ):
            assert list(our.state_lookup) == list(their.state_lookup)
            np.testing.assert_allclose(our.action_probability_array, their.action_probability_array, rtol=0, atol=tolerance)
