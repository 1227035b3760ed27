"""Sends every game that OpenSpiel registers through this package, and tables what becomes of each.

    python scripts/sweep.py                          prints rows as they come
    python scripts/sweep.py --output=docs/games.md   and writes them as a page

A game is taken with its default parameters or, where these make it too large or it needs an argument, with those in `SMALL`;
simultaneous games are converted. The native CFR+ solver gets it first; where that refuses because of imperfect recall, the
drop-in one. NashConv of a smaller game is compared with what OpenSpiel finds for the exported policy.

Each game has a process of its own with limited time and memory, so whatever it does ends as a row. `ValueError` and
`pyspiel.SpielError` are answers; any other exception, a crash, a hang or a wrong NashConv makes the exit code 1.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy as np
import pyspiel
from absl import app, flags

import spiel_cfrplus
from spiel_cfrplus.openspiel import cfr
from spiel_cfrplus.recall import ImperfectRecallError

FLAGS = flags.FLAGS

flags.DEFINE_list("games", None, "Short names of the games to try; all that are registered by default.")
flags.DEFINE_string("output", None, "Write the rows to this file as a markdown page.")
flags.DEFINE_float("time_limit", 60, "Seconds for each game.", lower_bound=0)
flags.DEFINE_integer("max_histories", 600_000, "A game with more histories is too large.", lower_bound=1)
flags.DEFINE_string("only", None, "Try this one game, parameters included, in this process; print its row as JSON.")

# Games with parameters that make them small, or that they need.
SMALL = {
    "add_noise": "add_noise(epsilon=0.1,seed=1,game=kuhn_poker())",
    "bargaining": "bargaining(max_turns=1)",
    "battleship": "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=2,"
    "allow_repeated_shots=false)",
    "blotto": "blotto(coins=4)",
    "cached_tree": "cached_tree(game=kuhn_poker())",
    "cliff_walking": "cliff_walking(height=2,width=3,horizon=6)",
    "clobber": "clobber(rows=3,columns=3)",
    "connect_four": "connect_four(rows=3,columns=3,x_in_row=3)",
    "coop_to_1p": "coop_to_1p(game=tiny_hanabi())",
    "dark_hex": "dark_hex(board_size=2)",
    "dark_hex_ir": "dark_hex_ir(num_rows=2,num_cols=3)",
    "dots_and_boxes": "dots_and_boxes(num_rows=1,num_cols=2)",
    "efg_game": "efg_game(filename=sample.efg)",
    "go": "go(board_size=2,max_game_length=6)",
    "go_fish": "go_fish(ranks=2,suits=2,initial_cards=1)",
    "goofspiel": "goofspiel(num_cards=4,imp_info=true)",
    "havannah": "havannah(board_size=2)",
    "hex": "hex(num_rows=2,num_cols=3)",
    "misere": "misere(game=kuhn_poker())",
    "mnk": "mnk(m=3,n=2,k=2)",
    "nfg_game": "nfg_game(filename=sample.nfg)",
    "nim": "nim(pile_sizes=1;2;3)",
    "normal_form_extensive_game": "normal_form_extensive_game(game=kuhn_poker())",
    "oh_hell": "oh_hell(num_suits=2,num_cards_per_suit=4,num_tricks_fixed=1)",
    "oshi_zumo": "oshi_zumo(coins=4,size=1,horizon=4)",
    "python_dynamic_routing": "python_dynamic_routing(max_num_time_step=3,players=2)",
    "python_iterated_prisoners_dilemma": "python_iterated_prisoners_dilemma(max_game_length=3)",
    "python_liars_poker": "python_liars_poker(hand_length=1,num_digits=3)",
    "repeated_game": "repeated_game(stage_game=matrix_pd(),num_repetitions=3)",
    "repeated_leduc_poker": "repeated_leduc_poker(num_hands=1)",
    "repeated_poker": "repeated_poker(max_num_hands=1,reset_stacks=true,rotate_dealer=false,"
    "universal_poker_game_string=universal_poker())",
    "restricted_nash_response": "restricted_nash_response(game=kuhn_poker())",
    "social_deduction": "social_deduction(players=3,max_rounds=1)",
    "start_at": "start_at(game=tic_tac_toe(),history=4;0)",
    "trade_comm": "trade_comm(num_items=4)",
    "turn_based_simultaneous_game": "turn_based_simultaneous_game(game=goofspiel(num_cards=3))",
    "universal_poker": "universal_poker(numRanks=3,numSuits=2,stack=400 400,bettingAbstraction=fc)",
    "y": "y(board_size=3)",
    "zerosum": "zerosum(game=sheriff(num_rounds=1))",
}

# The files that `SMALL` names. Uniform play is no equilibrium of either.
SAMPLE_FILES = {
    "sample.efg": """EFG 2 R "pennies" { "even" "odd" }
""
p "" 1 1 "" { "heads" "tails" } 0
p "" 2 1 "" { "heads" "tails" } 0
t "" 1 "" { 3 -3 }
t "" 2 "" { -1 1 }
p "" 2 1 "" { "heads" "tails" } 0
t "" 3 "" { -1 1 }
t "" 4 "" { 1 -1 }
""",
    "sample.nfg": """NFG 1 R "pennies" { "even" "odd" } { 2 2 }

3 -3 -1 1 -1 1 1 -1
""",
}

# Walks that take much time or memory per history stop earlier.
HEAVY = {"crazyhouse", "cursor_go", "kriegspiel", "shogi"}
MAX_HISTORIES_OF_HEAVY_GAMES = 20_000

MEMORY_LIMIT = 6 * 2**30
# Games with more histories get fewer iterations and are not evaluated with OpenSpiel.
LARGE = 20_000
ITERATIONS, ITERATIONS_OF_LARGE = 1000, 100
ANSWERS = ("solved", "too large", "refused")
FAILURES = ("crashed", "hung", "wrong")


@dataclasses.dataclass
class Row:
    """What became of a game; numbers that do not apply are dashes."""

    game: str
    outcome: str
    door: str = "-"
    histories: str = "-"
    infostates: str = "-"
    iterations: str = "-"
    nash_conv: str = "-"
    remark: str = ""


HEADER = ["game", "outcome", "door", "histories", "infostates", "iterations", "NashConv", "remark"]


# In the process of one game.


def try_game(text: str, max_histories: int) -> Row:
    """Loads, walks and solves one game."""
    try:
        game = pyspiel.load_game(text)
        remarks = []
        if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            game = pyspiel.convert_to_turn_based(game)
            remarks.append("turn-based form")
    except (ValueError, pyspiel.SpielError) as error:
        return Row(text, "refused", remark=f"OpenSpiel does not load it: {brief(error)}")
    try:
        tree = spiel_cfrplus.GameTree.from_game(game, max_histories=max_histories)
        row = Row(text, "solved", histories=str(tree.num_histories), infostates=str(tree.num_infostates))
        solve(tree, row, remarks)
    except (ValueError, pyspiel.SpielError) as error:
        if "max_histories" in str(error):
            row = Row(text, "too large", histories=f"more than {max_histories}")
        else:
            row = Row(text, "refused", remark=brief(error, game))
    row.remark = "; ".join(remarks) or row.remark
    return row


def solve(tree: spiel_cfrplus.GameTree, row: Row, remarks: list[str]) -> None:
    """Runs CFR+ and notes door, iterations and NashConv."""
    iterations = ITERATIONS_OF_LARGE if tree.num_histories > LARGE else ITERATIONS
    row.iterations = str(iterations)
    try:
        compiled = spiel_cfrplus.SequenceFormGame.from_tree(tree)
    except ImperfectRecallError:
        row.door = "drop-in"
        solve_with_drop_in(tree.game, iterations, row, remarks)
        return
    row.door = "native"
    solver = spiel_cfrplus.CFRPlusSolver(compiled)
    solver.run(iterations)
    row.nash_conv = f"{solver.nash_conv():.1e}"
    try:
        solver.average_policy()
    except ValueError as error:
        remarks.append(f"no TabularPolicy: {brief(error, tree.game)}")
    if tree.num_histories <= LARGE:
        confirm(solver, row, remarks)


def confirm(solver: spiel_cfrplus.Solver, row: Row, remarks: list[str]) -> None:
    """Compares NashConv with OpenSpiel's of the exported policy."""
    game, ours = solver.game.tree.game, solver.nash_conv()
    try:
        exported = solver.average_profile().to_pyspiel_policy()
        theirs = pyspiel.nash_conv(game, exported)
    except (ValueError, pyspiel.SpielError) as error:
        remarks.append(f"OpenSpiel cannot evaluate it: {brief(error, game)}")
        return
    if abs(ours - theirs) > 1e-9 * max(1.0, float(np.abs(solver.game.tree.returns).max())):
        row.outcome = "wrong"
        remarks.append(f"NashConv is {theirs:.1e} by OpenSpiel")


def solve_with_drop_in(game: pyspiel.Game, iterations: int, row: Row, remarks: list[str]) -> None:
    """The same for a game with imperfect recall, which only OpenSpiel can evaluate."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        solver = cfr.CFRPlusSolver(game)
    solver.run(iterations)
    remarks.append("imperfect recall, NashConv by OpenSpiel: a lower bound")
    try:
        row.nash_conv = f"{pyspiel.nash_conv(game, solver.tabular_average_policy()):.1e}"
    except pyspiel.SpielError as error:
        remarks[-1] = f"imperfect recall, OpenSpiel cannot evaluate it: {brief(error)}"


def brief(error: Exception, game: pyspiel.Game | None = None) -> str:
    """Type and first clause of an error."""
    text = str(error).removeprefix(str(game)).lstrip(": ")
    text = re.sub(r"^\S+/(\S+\.(cc|h):\d+)", r"\1", text)
    clause = re.split(r"[;\n]|[.,:] ", text, maxsplit=1)[0]
    return f"{type(error).__name__}: {textwrap.shorten(clause, 100)}"


def answer() -> None:
    """Tries the game `--only` and prints its row."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    importlib.import_module("open_spiel.python.games")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in SAMPLE_FILES.items():
            pathlib.Path(name).write_text(text)
        print("\n" + json.dumps(dataclasses.asdict(try_game(FLAGS.only, FLAGS.max_histories))))
        os.chdir("/")


# In the process that was started.


def try_apart(name: str) -> Row:
    """The row of the game with this short name, from a process of its own."""
    text = SMALL.get(name, name)
    heavy = name in HEAVY or name.startswith("python_")
    max_histories = min(FLAGS.max_histories, MAX_HISTORIES_OF_HEAVY_GAMES) if heavy else FLAGS.max_histories
    command = [sys.executable, __file__, f"--only={text}", f"--max_histories={max_histories}"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=FLAGS.time_limit, check=False
        )
    except subprocess.TimeoutExpired:
        return Row(text, "hung", remark=f"no answer within {FLAGS.time_limit:g} s")
    if result.returncode < 0:
        return Row(text, "crashed", remark=signal.Signals(-result.returncode).name)
    if result.returncode > 0:
        return Row(text, "crashed", remark=textwrap.shorten(result.stderr.strip().rpartition("\n")[2], 100))
    return Row(**json.loads(result.stdout.splitlines()[-1]))


def page(rows: list[Row]) -> str:
    """The rows as markdown."""
    counts = collections.Counter(row.outcome for row in rows)
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (*ANSWERS, *FAILURES) if counts[outcome])
    lines = [" | ".join(cells(row)) for row in rows]
    return f"""# What becomes of OpenSpiel's games

Made with open_spiel {importlib.metadata.version("open_spiel")} by

```bash
{shlex.join(["python", "scripts/sweep.py", *sys.argv[1:]])}
```

{len(rows)} games: {summary}.

* *solved*: by CFR+ through one of two doors, the *native* solver or, for games with imperfect recall, the *drop-in* one.
  NashConv is that of the average policy, in game units; it need not vanish unless two players play for a constant sum.
  OpenSpiel finds the same for the exported policy in every native row with at most {LARGE} histories, unless it says otherwise.
* *too large*: has more histories than the limit, and is told so.
* *refused*: the error is shown.

| {" | ".join(HEADER)} |
|{"---|" * len(HEADER)}
""" + "".join(f"| {line} |\n" for line in lines)


def cells(row: Row) -> list[str]:
    """The row for a markdown table."""
    game, *others = (cell.replace("|", "\\|") for cell in dataclasses.astuple(row))
    return [f"`{game}`", *others]


def sweep() -> int:
    """Tries the games, prints and writes rows; returns the exit code."""
    importlib.import_module("open_spiel.python.games")
    known = pyspiel.registered_names()
    names = FLAGS.games or known
    if unknown := sorted(set(names) - set(known)):
        print(f"error: no such game: {', '.join(unknown)}", file=sys.stderr)
        return 2
    rows = []
    for name in names:
        rows.append(try_apart(name))
        print(" | ".join(dataclasses.astuple(rows[-1])), flush=True)
    if FLAGS.output:
        output = pathlib.Path(FLAGS.output)
        unfinished = output.with_name(output.name + ".tmp")
        unfinished.write_text(page(rows))
        unfinished.replace(output)
    return int(any(row.outcome in FAILURES for row in rows))


def main(arguments: list[str]) -> None:
    """Is called by absl with flags parsed."""
    if FLAGS.only is not None:
        answer()
    else:
        sys.exit(sweep())


if __name__ == "__main__":
    app.run(main)
