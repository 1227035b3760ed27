"""Runs every game that OpenSpiel registers with this package, and tabulates the outcomes.

    python scripts/all_games.py                          prints the rows
    python scripts/all_games.py --output=docs/games.md   and writes them as a page

Each game has its default parameters or, if these make it too large or are incomplete, those in `SMALL`; simultaneous games are
converted. It is solved by the native CFR+ solver or, if that refuses imperfect recall, by the drop-in one. For smaller games
NashConv is compared with OpenSpiel's NashConv of the exported policy.

Each game is run in a separate process with limited time and memory, so every outcome is a row. `ValueError` and
`pyspiel.SpielError` are valid outcomes; any other exception, a crash, a timeout or a wrong NashConv sets the exit code to 1.
"""

from __future__ import annotations

import collections
import dataclasses
import importlib
import importlib.metadata
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import re
import resource
import shlex
import signal
import sys
import tempfile
import textwrap
import warnings

import numpy as np
import pyspiel
from absl import app, flags
from pages import write_whole

import spiel_cfrplus
from spiel_cfrplus.game.recall import ImperfectRecallError
from spiel_cfrplus.openspiel import cfr

FLAGS = flags.FLAGS

importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games

flags.DEFINE_list("games", None, "Short names of the games to try; all that are registered by default.")
flags.DEFINE_string("output", None, "Write the rows to this file as a markdown page.")
flags.DEFINE_float("time_limit", 60, "Seconds for each game.", lower_bound=0)
flags.DEFINE_integer("max_histories", 600_000, "A game with more histories is too large.", lower_bound=1)

# Parameters that make games small, or that are required.
SMALL = {
    "add_noise": "add_noise(epsilon=0.1,seed=1,game=kuhn_poker())",
    "bargaining": "bargaining(max_turns=2,max_num_instances=3)",
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
    "go_fish": "go_fish(ranks=3,suits=2,initial_cards=1)",
    "goofspiel": "goofspiel(num_cards=4,imp_info=true)",
    "havannah": "havannah(board_size=2)",
    "hex": "hex(num_rows=2,num_cols=3)",
    "latent_ttt": "start_at(game=latent_ttt(),history=0;1;2;3)",
    "misere": "misere(game=kuhn_poker())",
    "mnk": "mnk(m=3,n=2,k=2)",
    "nfg_game": "nfg_game(filename=sample.nfg)",
    "nim": "nim(pile_sizes=1;2;3)",
    "normal_form_extensive_game": "normal_form_extensive_game(game=kuhn_poker())",
    "oh_hell": "oh_hell(num_suits=2,num_cards_per_suit=4,num_tricks_fixed=1)",
    "oshi_zumo": "oshi_zumo(coins=4,size=1,horizon=4)",
    "phantom_ttt": "start_at(game=phantom_ttt(),history=0;4;2;1;7;3)",
    "phantom_ttt_ir": "start_at(game=phantom_ttt_ir(),history=0;4;2;1;7;3)",
    "python_dynamic_routing": "python_dynamic_routing(max_num_time_step=5,time_step_length=1.0)",
    "python_iterated_prisoners_dilemma": "python_iterated_prisoners_dilemma(max_game_length=3)",
    "python_liars_poker": "python_liars_poker(hand_length=1,num_digits=3)",
    "python_tic_tac_toe": "start_at(game=python_tic_tac_toe(),history=4;0;8)",
    "repeated_game": "repeated_game(stage_game=matrix_pd(),num_repetitions=3)",
    "repeated_leduc_poker": "repeated_leduc_poker(num_hands=1)",
    "repeated_poker": "repeated_poker(max_num_hands=1,reset_stacks=true,rotate_dealer=false,"
    "universal_poker_game_string=universal_poker())",
    "restricted_nash_response": "restricted_nash_response(game=kuhn_poker())",
    "social_deduction": "social_deduction(players=3,max_rounds=1)",
    "start_at": "start_at(game=tic_tac_toe(),history=4;0)",
    "trade_comm": "trade_comm(num_items=4)",
    "turn_based_simultaneous_game": "turn_based_simultaneous_game(game=goofspiel(num_cards=3))",
    "universal_poker": "universal_poker(betting=limit,numRanks=3,numSuits=2,raiseSize=200 400,maxRaises=1 1)",
    "y": "y(board_size=3)",
    "zerosum": "zerosum(game=sheriff(num_rounds=1))",
}

# The files in `SMALL`. Uniform play is not an equilibrium of either game.
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

# Games that need much time or memory per history have a lower limit, as all Python games have.
HEAVY = {"2048", "bridge", "chess", "colored_trails", "crazyhouse", "cursor_go", "kriegspiel", "morpion_solitaire", "shogi"}
MAX_HISTORIES_OF_HEAVY = 10_000
# OpenSpiel's own TabularPolicy(game) crashes for these games, and so does the export.
NOT_EXPORTED = {"chat_game"}

MEMORY_LIMIT = 6 * 2**30
# Games with more histories get fewer iterations and are not evaluated with OpenSpiel.
LARGE = 20_000
ITERATIONS, ITERATIONS_OF_LARGE = 1000, 100
ANSWERS = ("solved", "too large", "refused")
FAILURES = ("crashed", "hung", "wrong")


@dataclasses.dataclass
class Row:
    """The outcome for a game; cells that do not apply are dashes."""

    game: str
    outcome: str
    solver: str = "-"
    histories: str = "-"
    infostates: str = "-"
    iterations: str = "-"
    nash_conv: str = "-"
    remark: str = ""

    def cells(self) -> list[str]:
        """The cells in the order of `HEADER`."""
        return list(dataclasses.astuple(self))

    def add_remark(self, remark: str) -> None:
        """Appends a remark."""
        self.remark = f"{self.remark}; {remark}" if self.remark else remark


HEADER = ["game", "outcome", "solver", "histories", "infostates", "iterations", "NashConv", "remark"]


# Functions that run in the process of one game.


def answer(sender: multiprocessing.connection.Connection, folder: str, text: str, max_histories: int) -> None:
    """Runs a game and sends its row."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.devnull, "w") as devnull:
        os.dup2(devnull.fileno(), 1)
        os.dup2(devnull.fileno(), 2)
    os.chdir(folder)
    row = Row(text, "solved")
    try:
        try_game(row, max_histories)
    except (ValueError, pyspiel.SpielError) as error:
        if "max_histories" in str(error):
            row.outcome, row.histories = "too large", f"more than {max_histories}"
        else:
            row.outcome = "refused"
            row.add_remark(brief(error))
    except Exception as error:
        row.outcome = "crashed"
        row.add_remark(brief(error))
    sender.send(row)


def try_game(row: Row, max_histories: int) -> None:
    """Loads, walks and solves a game, and fills its row."""
    game = pyspiel.load_game(row.game)
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        row.add_remark("turn-based form")
        game = pyspiel.convert_to_turn_based(game)
    tree = spiel_cfrplus.GameTree.from_game(game, max_histories=max_histories)
    row.histories, row.infostates = str(tree.num_histories), str(tree.num_infostates)
    iterations = ITERATIONS_OF_LARGE if tree.num_histories > LARGE else ITERATIONS
    try:
        compiled = spiel_cfrplus.SequenceFormGame.from_tree(tree)
    except ImperfectRecallError:
        solve_with_drop_in(row, game, iterations)
    else:
        solve_natively(row, compiled, iterations)
    row.iterations = str(iterations)


def solve_natively(row: Row, game: spiel_cfrplus.SequenceFormGame, iterations: int) -> None:
    """Solves a game with the native solver and exports its policy."""
    row.solver = "native"
    solver = spiel_cfrplus.CFRPlusSolver(game)
    solver.run(iterations)
    row.nash_conv = f"{solver.nash_conv():.1e}"
    if row.game in NOT_EXPORTED:
        row.add_remark("not exported: OpenSpiel's own TabularPolicy(game) crashes")
        return
    try:
        solver.average_policy()
    except ValueError as error:
        row.add_remark(f"not exported: {brief(error)}")
    if game.tree.num_histories <= LARGE:
        confirm(row, solver)


def confirm(row: Row, solver: spiel_cfrplus.Solver) -> None:
    """Compares NashConv with OpenSpiel's NashConv of the same policy."""
    tree, ours = solver.game.tree, solver.nash_conv()
    try:
        policy = solver.average_profile().to_pyspiel_policy()
        theirs = pyspiel.nash_conv(tree.game, policy)
    except (ValueError, pyspiel.SpielError) as error:
        row.add_remark(f"not evaluated by OpenSpiel: {brief(error)}")
        return
    if not abs(ours - theirs) <= 1e-9 * max(1.0, float(np.abs(tree.returns).max())):
        row.outcome = "wrong"
        row.add_remark(f"NashConv is {theirs:.1e} by OpenSpiel")


def solve_with_drop_in(row: Row, game: pyspiel.Game, iterations: int) -> None:
    """Solves a game with imperfect recall with the drop-in solver; OpenSpiel evaluates the policy."""
    row.solver = "drop-in"
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        solver = cfr.CFRPlusSolver(game)
    solver.run(iterations)
    try:
        row.nash_conv = f"{pyspiel.nash_conv(game, solver.tabular_average_policy()):.1e}"
        row.add_remark("imperfect recall, NashConv by OpenSpiel: a lower bound")
    except pyspiel.SpielError as error:
        row.add_remark(f"imperfect recall, not evaluated by OpenSpiel: {brief(error)}")


def brief(error: Exception) -> str:
    """The type and the first clause of an error, without the game and history at the start of the message."""
    text = re.sub(r"^\S+/(?=\S+\.(cc|h):\d+)", "", str(error))
    text = re.sub(r"^[a-z_\d]+\(.*?\)+(, history \[.*?\])?:? ", "", text, flags=re.DOTALL)
    clause = re.split(r"[;\n]|[.,:] ", text, maxsplit=1)[0]
    return f"{type(error).__name__}: {textwrap.shorten(clause, 120)}"


# Functions that run in the main process.


def try_apart(folder: str, name: str) -> Row:
    """Runs the game with this short name in a separate process and returns its row."""
    text = SMALL.get(name, name)
    heavy = name in HEAVY or name.startswith("python_")
    max_histories = min(FLAGS.max_histories, MAX_HISTORIES_OF_HEAVY) if heavy else FLAGS.max_histories
    processes = multiprocessing.get_context("fork")  # so that the process does not import the modules again
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=answer, args=(sender, folder, text, max_histories))
    process.start()
    sender.close()
    try:
        if receiver.poll(FLAGS.time_limit):
            return receiver.recv()
        return Row(text, "hung", remark=f"no answer within {FLAGS.time_limit:g} s")
    except EOFError:
        process.join()
        code = process.exitcode or 0
        return Row(text, "crashed", remark=signal.Signals(-code).name if code < 0 else f"exit code {code}")
    finally:
        process.kill()
        process.join()


def page(rows: list[Row]) -> str:
    """The rows as markdown."""
    counts = collections.Counter(row.outcome for row in rows)
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (*ANSWERS, *FAILURES) if counts[outcome])
    escaped = [[cell.replace("|", "\\|") for cell in row.cells()] for row in rows]
    table = "".join(f"| `{game}` | {' | '.join(others)} |\n" for game, *others in escaped)
    return f"""# Coverage of OpenSpiel's games

This page shows, for each game that OpenSpiel registers, whether this package solves it. Generated with open_spiel \
{importlib.metadata.version("open_spiel")} by

```bash
{shlex.join(["python", "scripts/all_games.py", *sys.argv[1:]])}
```

{len(rows)} games: {summary}.

* *solved*: by CFR+, with the *native* solver or, for games with imperfect recall, with the *drop-in* solver (column *solver*).
  NashConv is for the average policy, in game units; it may not converge to 0 except in two-player constant-sum games. For
  every native row with at most {LARGE} histories and without a remark to the contrary, OpenSpiel computes the same NashConv
  for the exported policy.
* *too large*: the game has more histories than the limit.
* *refused*: the remark is the error.
* Some OpenSpiel games do not check their parameters: `connect_four(rows=0)` crashes the interpreter, `hex(board_size=100000)`
  allocates 10 billion cells. The command line first tries every game in a forked process with at most 2 GB, and refuses it if
  that process crashes. The trial makes a few random moves only, so it does not detect a fault deeper in the game. The Python
  functions make no such trial, and neither does the command line on Windows. Copies of the states of `morpion_solitaire` are
  broken in OpenSpiel 2.0.2: in most cases it is refused with a one-line error, but it may crash the interpreter.

| {" | ".join(HEADER)} |
|{"---|" * len(HEADER)}
{table}"""


def try_all(names: list[str]) -> list[Row]:
    """Runs the games and prints their rows."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file, text in SAMPLE_FILES.items():
            pathlib.Path(folder, file).write_text(text)
        for name in names:
            rows.append(try_apart(folder, name))
            print(" | ".join(rows[-1].cells()), flush=True)
    return rows


def main(arguments: list[str]) -> None:
    """Called by absl after it has parsed the flags."""
    known = pyspiel.registered_names()
    names = FLAGS.games or known
    if unknown := sorted({*names, *arguments[1:]} - set(known)) or arguments[1:]:
        sys.exit(f"error: no game is called {', '.join(unknown)}")
    rows = try_all(names)
    if FLAGS.output:
        write_whole(FLAGS.output, page(rows))
    sys.exit(any(row.outcome in FAILURES for row in rows))


if __name__ == "__main__":
    app.run(main)
