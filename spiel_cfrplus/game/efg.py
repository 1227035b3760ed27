"""Compiled games as Gambit's `.efg` format, which OpenSpiel and pygambit read.

The tree is written as it was compiled, so that subgames and games with locked infostates are games of their own. What reads it
gets the same histories, infostates and payoffs; infostates and actions have the order that they have here, and so a policy of
one game is a policy of the other, number by number:

>>> import pathlib, tempfile
>>> import pyspiel
>>> from spiel_cfrplus import StrategyProfile, compile_game, nash_conv
>>> game = compile_game(pyspiel.load_game("kuhn_poker"))
>>> with tempfile.TemporaryDirectory() as directory:
...     path = pathlib.Path(directory, "kuhn.efg")
...     write_efg(game, path)
...     text = path.read_text(encoding="utf-8")
>>> print("\\n".join(text.splitlines()[:3]))
EFG 2 R "kuhn_poker()" { "player 0" "player 1" } ""
c "" 1 "" { "Deal:0" 1/3 "Deal:1" 1/3 "Deal:2" 1/3 } 0
c "" 2 "" { "Deal:1" 1/2 "Deal:2" 1/2 } 0
>>> again = compile_game(pyspiel.load_efg_game(text))
>>> uniform = StrategyProfile.uniform(game)
>>> nash_conv(again, StrategyProfile(again, uniform.probabilities)) == nash_conv(game, uniform)
True
"""

from __future__ import annotations

import decimal
import fractions
import functools
import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import printable
from spiel_cfrplus._utils.files import atomic_write
from spiel_cfrplus.game.action_names import action_name, action_names
from spiel_cfrplus.game.game_tree import GameTree
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.walk import CHANCE, TERMINAL

# Chance probabilities are written as fractions up to this denominator where that is exact. OpenSpiel reads 32-bit integers.
_LARGEST_DENOMINATOR = 10**6
# Enough for sums of float64 numbers to be exact.
_DIGITS = 1200


def write_efg(game: pyspiel.Game | SequenceFormGame, path: str | os.PathLike[str]) -> None:
    """Writes a game as an `.efg` file, which has a line for each history.

    The numbers are those of the game. Chance probabilities are written as fractions where these are the same doubles.
    Elsewhere they are decimal numbers, the largest of which is changed in its last digits so that the sum is exactly 1,
    as Gambit demands. Actions and infostates are labeled by OpenSpiel's names and strings, with quotation marks replaced, and
    actions also by their ids where two of an infostate have the same name.

    Args:
      game: a game, or the result of `compile_game`, `compile_subgame` or `lock`.
      path: the file; its name should end in `.efg`.

    Raises:
      OSError: the file cannot be written.
      TypeError, ValueError: the game cannot be compiled, or `path` is no path.
    """
    game = compile_game(game)
    with atomic_write(path) as file:
        for line in _lines(game.tree):
            file.write(line.encode("utf-8", "replace") + b"\n")


def _lines(tree: GameTree) -> Iterator[str]:
    players = " ".join(f'"player {player}"' for player in range(tree.num_players))
    yield f'EFG 2 R "{_label(f"{tree.game}{tree.below_roots}")}" {{ {players} }} ""'
    decisions, chance_moves, terminals = _infostate_lines(tree), _chance_lines(tree), _terminal_lines(tree)
    for actor, infostate in zip(tree.actor.tolist(), tree.infostate.tolist(), strict=True):
        if actor == CHANCE:
            yield next(chance_moves)
        elif actor == TERMINAL:
            yield next(terminals)
        else:
            yield decisions[infostate]


def _infostate_lines(tree: GameTree) -> list[str]:
    """The line of the histories of each infostate. Infostates of a player are numbered from 1."""
    names, start, actions = action_names(tree), tree.legal_action_start.tolist(), tree.legal_actions.tolist()
    numbers = [itertools.count(1) for _ in range(tree.num_players)]
    lines = []
    for infostate, (player, key) in enumerate(zip(tree.infostate_player.tolist(), tree.infostate_keys, strict=True)):
        own = slice(start[infostate], start[infostate + 1])
        labels = " ".join(f'"{label}"' for label in _labels(names[own], actions[own]))
        lines.append(f'p "" {player + 1} {next(numbers[player])} "{_label(key)}" {{ {labels} }} 0')
    return lines


def _chance_lines(tree: GameTree) -> Iterator[str]:
    """The lines of the chance moves in the order of histories."""
    histories = np.flatnonzero(tree.actor == CHANCE)
    by_parent = 1 + np.argsort(tree.parent[1:], kind="stable")  # children of a history stay in their order
    parents = tree.parent[by_parent]
    first, last = np.searchsorted(parents, histories), np.searchsorted(parents, histories, side="right")
    for number, (history, state) in enumerate(tree.states(histories)):
        children = by_parent[first[number] : last[number]]
        actions = tree.action[children].tolist()
        is_among_roots = history == 0 and len(tree.roots) > 1
        names = [f"root {action}" if is_among_roots else action_name(state, action) for action in actions]
        probabilities = _exact_sum_of_one(tuple(tree.chance_probability[children].tolist()))
        outcomes = " ".join(f'"{label}" {p}' for label, p in zip(_labels(names, actions), probabilities, strict=True))
        yield f'c "" {number + 1} "" {{ {outcomes} }} 0'


def _terminal_lines(tree: GameTree) -> Iterator[str]:
    """The lines of the terminal histories. Those with equal returns have one outcome, as Gambit calls it."""
    returns, outcomes = np.unique(tree.returns + 0.0, axis=0, return_inverse=True)  # no -0.0
    numbers = [", ".join(np.format_float_positional(value, trim="-") for value in row) for row in returns]
    for outcome in outcomes.ravel().tolist():
        yield f't "" {outcome + 1} "" {{ {numbers[outcome]} }}'


@functools.lru_cache(maxsize=1000)
def _exact_sum_of_one(probabilities: tuple[float, ...]) -> tuple[str, ...]:
    """Chance probabilities as fractions or decimal numbers whose exact sum is 1."""
    ratios = [fractions.Fraction(probability).limit_denominator(_LARGEST_DENOMINATOR) for probability in probabilities]
    if sum(ratios) == 1 and tuple(map(float, ratios)) == probabilities:
        return tuple(map(str, ratios))
    with decimal.localcontext(prec=_DIGITS):
        numbers = [decimal.Decimal(repr(probability)) for probability in probabilities]
        numbers[int(np.argmax(probabilities))] += 1 - sum(numbers)
        return tuple(f"{number:f}" for number in numbers)


def _labels(names: Sequence[str], actions: Sequence[int]) -> list[str]:
    """Distinct labels of the actions of one history."""
    labels = [_label(name) for name in names]
    if len(set(labels)) == len(labels) and all(labels):
        return labels
    return [f"{label} [{action}]".lstrip() for label, action in zip(labels, actions, strict=True)]


def _label(text: str) -> str:
    """A text that can stand in quotation marks on one line; neither format has escapes that both read.

    Gambit 16.7 refuses labels with other than printable ASCII characters, spaces at an end, or two spaces in a row.
    """
    ascii_text = printable(text).encode("ascii", "replace").decode()
    return " ".join(ascii_text.replace('"', "'").replace("\\", "/").split())
