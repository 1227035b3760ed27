"""The strategy explorer: a page on which one walks through a game and looks at what a strategy plays.

`write_explorer(profile, "policy.html")` writes one file, which current browsers show without a server and without a network.
The page shows the infostates of a public situation (see `situations`) with the probabilities of actions, reach, expected values
and regrets as `infostate_table` defines them, and the situations that can follow.

>>> import pyspiel, tempfile, pathlib
>>> from spiel_cfrplus import CFRPlusSolver
>>> solver = CFRPlusSolver(pyspiel.load_game("kuhn_poker"))
>>> solver.run(100)
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "kuhn.html")
...     write_explorer(solver.average_profile(), path)
...     path.read_text().count("https:")
0
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spiel_cfrplus.analysis.infostate_table import InfostateTable, history_reach, infostate_table
from spiel_cfrplus.display.pages import check_page, json_text, packed, page, write_page
from spiel_cfrplus.display.situations import Situations, situations_of
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.policies.evaluation import evaluate
from spiel_cfrplus.policies.profile import StrategyProfile, checked_profile
from spiel_cfrplus.solving.curve import Row

MOST_INFOSTATES = 500_000
MOST_BYTES = 20_000_000
# Columns of `InfostateTable` on the page, one number for each action or for each infostate.
_OF_ACTIONS = ("probability", "expected_value", "regret")
_OF_INFOSTATES = ("own_reach", "counterfactual_reach")


def write_explorer(
    profile: StrategyProfile,
    path: str | os.PathLike[str],
    *,
    other: StrategyProfile | None = None,
    names: tuple[str, str] = ("A", "B"),
    rows: Mapping[str, Iterable[Row]] | None = None,
) -> None:
    """Writes the explorer of a profile; the file is replaced atomically.

    Numbers are rounded to float32 in the file. Texts of the game are shown as text, whatever they contain.

    Args:
      profile: the profile; `read_policy` and `load_policy` make one of other policies.
      path: a file name that ends in `.html`.
      other: a second profile of the same game, which is shown beside the first.
      names: of the profiles on the page.
      rows: convergence rows by name of the run, see `load_rows`, of which a curve is drawn.

    Raises:
      OSError: the file cannot be written.
      TypeError: not a profile, or not a path.
      ValueError: the name does not end in `.html`; the profiles have different games; or the game has more than
        `MOST_INFOSTATES` infostates, or the file would have more than `MOST_BYTES` bytes.
    """
    check_page(path)
    check_size(checked_profile(profile).game)
    profiles = [profile] if other is None else [profile, checked_profile(other)]
    text = _page(profiles, list(names), {name: list(own) for name, own in (rows or {}).items()})
    if len(text) > MOST_BYTES:
        raise ValueError(f"the explorer of {profile.game.tree.game} would have {len(text)} bytes, the limit is {MOST_BYTES}")
    write_page(path, text)


def check_size(game: SequenceFormGame) -> None:
    """Checks that the game is not too large for an explorer.

    Raises:
      ValueError: it is.
    """
    if game.num_infostates > MOST_INFOSTATES:
        raise ValueError(
            f"{game.tree.game} has {game.num_infostates} infostates, an explorer shows at most {MOST_INFOSTATES}; "
            "compile_subgame makes a game of a part"
        )


def _page(profiles: list[StrategyProfile], names: list[str], rows: Mapping[str, list[Row]]) -> str:
    game = profiles[0].game
    if any(profile.game.fingerprint != game.fingerprint for profile in profiles):
        raise ValueError(f"the two policies are of different games: {game.description} and {profiles[1].game.description}")
    situations = situations_of(game)
    tables = list(map(infostate_table, profiles))
    directory, text = packed(_arrays(tables, situations))
    header = {
        "game": str(game.tree.game),
        "num_players": game.num_players,
        "num_histories": game.tree.num_histories,
        "profiles": [_summary(*pair) for pair in zip(names, profiles, strict=False)],
        "rows": {name: [[row.iteration, row.nash_conv] for row in own] for name, own in rows.items()},
        "arrays": directory,
    }
    return page("explorer", {"header": json_text(header), "arrays": text})


def _summary(name: str, profile: StrategyProfile) -> dict[str, Any]:
    evaluation = evaluate(profile.game, profile)
    return {"name": name, "nash_conv": evaluation.nash_conv, "values": evaluation.values.tolist()}


def _arrays(tables: list[InfostateTable], situations: Situations) -> dict[str, np.ndarray]:
    """The arrays of the page: I infostates in the order of the table, R rows of the table, M situations.

    `texts` is JSON with the strings of infostates, the names of actions and the labels of situations. Arrays of profile k have
    names that end in k.
    """
    table, tree = tables[0], tables[0].profile.game.tree
    order = np.argsort(tree.infostate_player, kind="stable")
    place = np.argsort(order)  # of the infostates of the tree in the table
    counts = np.diff(tree.legal_action_start)[order]
    row_start = np.concatenate([[0], np.cumsum(counts)])
    names, name = np.unique(table["action_name"].astype(str), return_inverse=True)
    texts = [[tree.infostate_keys[infostate] for infostate in order], names.tolist(), situations.labels]
    arrays = {
        "texts": np.frombuffer(json.dumps(texts).encode("ascii"), np.uint8),
        "infostate_player": tree.infostate_player[order].astype(np.uint8),
        "row_start": row_start.astype(np.uint32),
        "row_action": table["action"].astype(np.uint32),
        "row_name": name.astype(np.uint32),
        "situation_infostate_start": situations.infostate_start.astype(np.uint32),
        "situation_infostates": place[situations.infostates].astype(np.uint32),
        "situation_child_start": situations.child_start.astype(np.uint32),
        "situation_label": situations.label.astype(np.uint32),
    }
    for number, own in enumerate(tables):
        arrays |= {f"{column}{number}": own[column].astype(np.float32) for column in _OF_ACTIONS}
        arrays |= {f"{column}{number}": own[column][row_start[:-1]].astype(np.float32) for column in _OF_INFOSTATES}
        arrays |= {f"{column}{number}": values for column, values in _of_situations(own.profile, situations).items()}
    return arrays


def _of_situations(profile: StrategyProfile, situations: Situations) -> dict[str, np.ndarray]:
    """The probability that play reaches each situation, and each player's expected value given that it does, (M, n)."""
    tree, reach = profile.game.tree, history_reach(profile)
    ends = np.zeros(tree.num_histories)
    totals = []
    for returns in tree.returns.T:
        ends[tree.terminal] = reach[tree.terminal] * returns
        totals.append(situations.totals(ends))
    reach_of_situation = np.bincount(situations.of_history, reach)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.stack(totals, axis=1) / reach_of_situation[:, None]
    return {"situation_reach": reach_of_situation.astype(np.float32), "situation_value": values.astype(np.float32)}
