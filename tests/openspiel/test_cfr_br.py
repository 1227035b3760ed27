"""The drop-in `cfr_br` compared with the OpenSpiel module that it replaces."""

import pytest
from drop_in import assert_same_policies, load
from open_spiel.python.algorithms import cfr_br as upstream_cfr_br

from spiel_cfrplus.openspiel import cfr_br


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("game", "num_iterations"),
    [("kuhn_poker", 30), ("liars_dice(dice_sides=3)", 10), pytest.param("leduc_poker", 3, marks=pytest.mark.slow)],
)
def test_cfr_br_equals_upstream(game, num_iterations, linear, plus):
    game = load(game)
    options = {"linear_averaging": linear, "regret_matching_plus": plus}
    assert_same_policies(cfr_br.CFRBRSolver(game, **options), upstream_cfr_br.CFRBRSolver(game, **options), num_iterations, 0)
