"""Policies as JSON and CSV texts; see `files`.

Both are read as rows (player, information-state string, action id, probability). Numbers are written so that the same doubles
are read. Action names are for people and are not read.
"""

from __future__ import annotations

import array
import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from spiel_cfrplus._utils.archives import DamagedError, ShortReads, shortened, without_duplicates
from spiel_cfrplus._utils.memory import available_bytes
from spiel_cfrplus.game.action_names import action_names
from spiel_cfrplus.game.sequence_form import SequenceFormGame

Row = tuple[int, str, int, float]

CSV_COLUMNS = ("player", "infostate", "action", "action_name", "probability")
# Python's `csv` refuses longer fields by default, and so would other programs written with it.
_LONGEST_FIELD = 131072
_PIECE = 1 << 20
# Upper bounds on the memory that Python takes to read JSON: for each character, and for each list, object and entry.
_BYTES_PER_CHARACTER = 9
_BYTES_PER_ENTRY = 250


# Writing.


def _named_rows(
    game: SequenceFormGame, probabilities: np.ndarray, player: int
) -> Iterator[tuple[str, list[tuple[int, str, float]]]]:
    """For each infostate of the player, its string and (action id, action name, probability) of its actions."""
    treeplex, tree = game.treeplexes[player], game.tree
    names = game.derived(_action_names)
    owner = np.repeat(tree.infostate_player, np.diff(tree.legal_action_start))
    own_names = [names[action] for action in np.flatnonzero(owner == player).tolist()]
    own_probabilities = probabilities[game.player_slices[player]][1:].tolist()
    rows = list(zip(treeplex.actions[1:].tolist(), own_names, own_probabilities, strict=True))
    starts = (treeplex.sequence_start - 1).tolist()
    for point, key in enumerate(treeplex.infostate_keys):
        yield key, rows[starts[point] : starts[point + 1]]


def _action_names(game: SequenceFormGame) -> tuple[str, ...]:
    return action_names(game.tree)


def json_players(game: SequenceFormGame, probabilities: np.ndarray) -> Iterator[str]:
    """The parts of the list of players, a line for each infostate; ASCII."""
    encode = json.JSONEncoder().encode
    for player in range(game.num_players):
        yield ",\n{" if player else "{"
        between = "\n"
        for key, rows in _named_rows(game, probabilities, player):
            yield f"{between}{encode(key)}: {encode(rows)}"
            between = ",\n"
        yield "\n}"


def write_csv(file: BinaryIO, game: SequenceFormGame, probabilities: np.ndarray) -> None:
    """Writes the rows of all players, player 0 first.

    Raises:
      ValueError: an information-state string is too long for a field.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogatepass", newline="")
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    for player in range(game.num_players):
        for key, rows in _named_rows(game, probabilities, player):
            if len(key) >= _LONGEST_FIELD:
                raise ValueError(
                    f"{game.tree.game}: an information-state string of {len(key)} characters is too long for a field of "
                    "a .csv file; save the policy as .npz or .json"
                )
            writer.writerows((player, key, action, name, repr(probability)) for action, name, probability in rows)
    text.detach()  # flushes, and leaves the file open


# Reading.


def read_json(file: ShortReads) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
      DamagedError: there is none, it has a key twice, or reading it takes more memory than is available.
    """
    available = available_bytes()
    size = file.seek(0, io.SEEK_END)
    if size > available:
        raise DamagedError(f"{size} bytes, which do not fit into memory")
    file.seek(0)
    data = b"".join(iter(lambda: file.read(_PIECE), b""))
    entries = sum(data.count(mark) for mark in (b"[", b"{", b","))
    if _BYTES_PER_CHARACTER * len(data) + _BYTES_PER_ENTRY * entries > available:
        raise DamagedError(f"{size} bytes with {entries} entries, which do not fit into memory")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=without_duplicates)
    except RecursionError as error:
        raise DamagedError("too many nested lists") from error
    except ValueError as error:
        raise DamagedError(error) from error
    if not isinstance(value, dict):
        raise DamagedError("not a JSON object")
    return value


def json_rows(players: Any) -> Iterator[Row]:
    """The rows in what `json_players` wrote.

    Raises:
      DamagedError: other types than expected.
    """
    if not isinstance(players, list) or not all(isinstance(infostates, dict) for infostates in players):
        raise DamagedError("players is not a list of objects")
    for player, infostates in enumerate(players):
        for key, rows in infostates.items():
            if not isinstance(rows, list):
                raise DamagedError(f"infostate {key!r} has {rows!r}")
            for row in rows:
                match row:
                    case [int(action), str(), float() | int() as probability] if not isinstance(action, bool):
                        yield player, key, action, float(probability)
                    case _:
                        raise DamagedError(f"infostate {key!r} has {row!r}, not [action id, action name, probability]")


def csv_rows(file: ShortReads) -> Iterator[Row]:
    """The rows of a CSV file.

    Raises:
      DamagedError: it is not such as `write_csv` writes.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogatepass", newline="")
    rows = csv.reader(_lines(text), strict=True)
    try:
        if (header := next(rows, None)) != list(CSV_COLUMNS):
            raise DamagedError(f"the first row is {header}, not {','.join(CSV_COLUMNS)}")
        for row in rows:
            if len(row) != len(CSV_COLUMNS):
                raise DamagedError(f"line {rows.line_num} has {len(row)} fields")
            player, key, action, _, probability = row
            try:
                yield int(player), key, int(action), float(probability)
            except ValueError as error:
                raise DamagedError(f"line {rows.line_num}: {error}") from error
    except (csv.Error, UnicodeError) as error:
        raise DamagedError(f"line {rows.line_num}: {error}") from error


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines of a text, none of which takes much memory."""
    longest = len(CSV_COLUMNS) * _LONGEST_FIELD
    while line := text.readline(longest):
        if len(line) == longest:
            raise DamagedError(f"a line of {longest} characters or more")
        yield line


def probabilities_of_rows(game: SequenceFormGame, rows: Iterable[Row]) -> np.ndarray:
    """The numbers of rows in any order, float64 (S,), which may not be distributions.

    Raises:
      DamagedError: a row is not of this game, comes twice or is missing.
    """
    values, given = array.array("d", [1.0]) * game.num_sequences, bytearray(game.num_sequences)
    starts = [own.start for own in game.player_slices]
    for empty_sequence in starts:
        given[empty_sequence] = True
    actions = [treeplex.actions.tolist() for treeplex in game.treeplexes]
    firsts = [treeplex.sequence_start.tolist() for treeplex in game.treeplexes]
    for player, key, action, probability in rows:
        if not 0 <= player < game.num_players:
            raise DamagedError(f"{game.tree.game} has no player {player}")
        point = game.treeplexes[player].decision_point_at.get(key)
        if point is None:
            raise DamagedError(f"player {player} has no infostate {shortened(repr(key))} in {game.description}")
        try:
            sequence = actions[player].index(action, firsts[player][point], firsts[player][point + 1])
        except ValueError as error:
            raise DamagedError(f"player {player} has no action {action} at infostate {shortened(repr(key))}") from error
        if given[starts[player] + sequence]:
            raise DamagedError(f"action {action} of player {player} at infostate {shortened(repr(key))} comes twice")
        given[starts[player] + sequence] = True
        values[starts[player] + sequence] = probability
    if (missing := given.find(0)) >= 0:
        raise DamagedError(_missing(game, missing))
    return np.array(values)


def _missing(game: SequenceFormGame, missing: int) -> str:
    player = int(np.searchsorted([own.stop for own in game.player_slices], missing, side="right"))
    treeplex = game.treeplexes[player]
    sequence = missing - game.player_slices[player].start
    key = treeplex.infostate_keys[treeplex.decision_point_of[sequence]]
    return (
        f"no action {treeplex.actions[sequence]} of player {player} at infostate {shortened(repr(key))} of {game.description}"
    )
