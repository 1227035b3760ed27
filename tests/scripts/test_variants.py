"""scripts/variants.py as a user runs it, and the algorithms that it measures in addition to the package."""

import csv
import runpy
import subprocess
import sys

import games
import numpy as np
import pyspiel
import pytest
from repository import ROOT, SCRIPTS

from spiel_cfrplus import Averaging, CFRPlusSolver, compile_game, make_solver
from spiel_cfrplus.regret_minimizers import RegretMatchingPlus, SimplexRegretMatching

STABILIZED = runpy.run_path(str(SCRIPTS / "stabilized.py"))
perturbed = runpy.run_path(str(SCRIPTS / "perturbation.py"))["perturbed"]
MATRIX = [[2, -1, 0], [-1, 1, 3], [1, 0, -2]]


def tables(*flags):
    """The cells of each table that the script prints, by title and name of the row."""
    command = [sys.executable, str(SCRIPTS / "variants.py"), *flags]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    found = {}
    for part in result.stdout.split("## ")[1:]:
        title, *lines = part.splitlines()
        rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        found[title] = {name: cells for name, *cells in rows[2:]}
    return found


def variants(*flags):
    """The rows of the table of a matrix game, by name."""
    rows = tables("--games=matrix", *flags)["matrix game"]
    return {name: [float(cell) for cell in cells] for name, cells in rows.items()}


def test_stored_rows_are_not_measured_again_and_ratios_are_to_the_best(tmp_path):
    """The best of each game, 1e-12 and 1e-10, counts as 1e-9; 4e-9 and 9e-9 have the mean ratio 6 and the largest ratio 9."""
    own, other = tmp_path / "own.csv", tmp_path / "other.csv"
    stored = [
        [game, 0, row, "3 7", f"1 {number} 1"]
        for game, best, second in (("kuhn_poker", 1e-12, 4e-9), ("matrix game", 1e-10, 9e-9))
        for row, number in (("dcfr, weights t^2", best), ("cfr+, weights t^1", second))
    ]
    with other.open("w", newline="") as file:
        csv.writer(file).writerows(stored)
    flags = ("--games=kuhn_poker,matrix", "--rows=restarts", "--iterations=3,7", f"--measured={own},{other}")
    found = tables(*flags)
    assert found["kuhn_poker"]["dcfr, weights t^2"] == ["1.00e+00", "1.00e-12", "1.00e+00"]
    ratios = found["Ratios to the best row of each game"]
    assert [ratios[row][2:] for row in ("dcfr, weights t^2", "cfr+, weights t^1")] == [["1", "1"], ["6", "9"]]
    with own.open(newline="") as file:
        added = [tuple(row[:4]) for row in csv.reader(file)]
    names = {("kuhn_poker", "0", name, "3 7") for name in found["kuhn_poker"]} | {
        ("matrix game", "0", name, "3 7") for name in found["matrix game"]
    }
    assert set(added) == names - {tuple(map(str, row[:4])) for row in stored}
    assert len(set(added)) == len(added)


@pytest.mark.slow
def test_medians_and_ranges_over_runs(tmp_path):
    own = tmp_path / "own.csv"
    flags = ("--games=leduc_poker", "--rows=restarts", "--iterations=1000", "--runs=3", f"--measured={own}")
    found = tables(*flags)
    with own.open(newline="") as file:
        numbers = [float(row[4].split()[0]) for row in csv.reader(file) if row[2] == "cfr+, weights t^2"]
    smallest, median, largest = sorted(numbers)
    assert smallest < median < largest
    assert found["3 runs of 1,000 iterations"]["cfr+, weights t^2"] == [f"{median:.2e} [{smallest:.2e}, {largest:.2e}]"]


def test_perturbed_games_differ_by_rounding_and_are_as_symmetric():
    game = compile_game(pyspiel.load_game("leduc_poker"))
    reduced = make_solver("cfr", game).reduction.num_sequences
    seen = []
    for run in range(1, 25):
        payoffs = perturbed(game, run).payoffs
        changed = payoffs != game.payoffs
        (magnitude,) = set(np.abs(game.payoffs[changed]))
        assert (changed == (np.abs(game.payoffs) == magnitude)).all()
        np.testing.assert_array_equal(payoffs.sum(axis=1), 0)
        seen.append(payoffs.tobytes())
        error = (np.abs(payoffs) - np.abs(game.payoffs))[changed] / np.spacing(magnitude)
        assert 1 <= error.min() == error.max() <= 24
    assert len(set(seen)) == 24
    assert make_solver("cfr", perturbed(game, 1)).reduction.num_sequences == reduced


def test_averages_restart_after_powers_of_two():
    solver = CFRPlusSolver(games.matrix_game(MATRIX), averaging=Averaging(0, delay=4))
    solver.run(7)
    row = variants("--rows=restarts", "--iterations=3,7")["cfr+, weights t^0, restarts"]
    assert row[1] == pytest.approx(solver.nash_conv(), rel=1e-2)  # three digits are printed
    assert row[1] != pytest.approx(row[0], rel=1e-2)


def test_stabilized_variants_are_compared_with_predictive_cfr_plus():
    rows = variants("--rows=stabilized", "--iterations=100")
    assert rows["pcfr+ without rounding, t^2"] == rows["pcfr+, weights t^2"]
    for form in ("smooth", "stable"):
        assert rows["pcfr+, weights t^2"][0] != rows[f"{form}, floor 1, t^2"][0] < 2e-3


@pytest.mark.parametrize("unit", [1.0, 2.0**-40, 2.0**40])
def test_smooth_worked_by_hand(unit):
    """The floor is 1, so the table begins at (1/2, 1/2).

    (.2, 0) brings regrets (.1, -.1). The table is (.6, .4), with the prediction (.7, .3).
    (.12, -.28) earns .7 * .12 - .3 * .28 = 0. The table would be (.72, .12), of sum .84; the nearest of sum 1 is (.8, .2). With
    the prediction it would be (.92, -.08), of which the positive part is too small; the nearest of sum 1 is (1, 0).
    """
    smooth = STABILIZED["Smooth"]([2], np.full(2, unit))
    for utility, table, strategy in (([0.2, 0], [0.6, 0.4], [0.7, 0.3]), ([0.12, -0.28], [0.8, 0.2], [1, 0])):
        smooth.observe_utility(np.multiply(utility, unit))
        np.testing.assert_allclose(smooth.table, np.multiply(table, unit), rtol=1e-12)
        np.testing.assert_allclose(smooth.next_strategy(), strategy, rtol=0, atol=1e-12)


def test_stable_worked_by_hand():
    """The floor is 1, and so is the table at first.

    (.2, 0) brings regrets (.1, -.1). The table is (1.1, .9), with the prediction (1.2, .8).
    Then let the table be (.7, 1.05). (.1, -.15) earns 0. The table would be (.8, .9), none of it above the floor: it is (1, 1),
    and nothing is predicted. (1, 0) brings (1/2, -1/2): (1.5, .5), with the prediction (2, 0).
    """
    stable = STABILIZED["Stable"]([2], np.ones(2))
    stable.observe_utility([0.2, 0])
    np.testing.assert_allclose(stable.table, [1.1, 0.9], rtol=1e-12)
    np.testing.assert_allclose(stable.next_strategy(), [0.6, 0.4], rtol=1e-12)
    stable.table[:] = 0.7, 1.05
    for utility, table, strategy in (([0.1, -0.15], [1, 1], [0.5, 0.5]), ([1, 0], [1.5, 0.5], [1, 0])):
        stable.observe_utility(utility)
        np.testing.assert_allclose(stable.table, table, rtol=1e-12)
        np.testing.assert_allclose(stable.next_strategy(), strategy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["Smooth", "Stable"])
def test_without_a_floor_they_are_predictive_regret_matching_plus(name):
    rng = np.random.default_rng(5)
    sizes = [2, 4, 1, 3]
    stabilized = STABILIZED[name](sizes, np.full(10, 1e-9))
    plain = SimplexRegretMatching(sizes, RegretMatchingPlus(), prediction_weight=1.0)
    for _ in range(30):
        utility = rng.normal(size=10)
        for minimizer in (stabilized, plain):
            minimizer.observe_utility(utility)
        np.testing.assert_allclose(stabilized.next_strategy(), plain.next_strategy(), rtol=0, atol=1e-6)
