"""Converts the policy of a file to .npz, .json or .csv; or writes the game of a file, or of --game, as .efg.

The ending of the last argument decides the format."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus._utils.files import check_writable
from spiel_cfrplus.cli import policy_files
from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.game.efg import write_efg
from spiel_cfrplus.policies import files

USAGE = "export FILE OUT [--game=GAME], or export --game=GAME OUT.efg"


def define(values: flags.FlagValues) -> None:
    """Defines the flags."""
    policy_files.define_game(values)


def run(values: flags.FlagValues, arguments: Sequence[str]) -> int:
    """Writes the file."""
    *paths, out = policy_files.checked(arguments, [1, 2], USAGE)
    is_game = pathlib.PurePath(out).suffix.lower() == ".efg"
    if not paths and not (is_game and values.game is not None):
        raise UsageError(f"expected the file of a policy and a file to write; usage: spiel-cfrplus {USAGE}")
    try:
        (check_writable if is_game else files.check_path)(out)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error
    profiles = policy_files.load(paths, values)
    try:
        if is_game:
            write_efg(profiles[0].game if profiles else policy_files.compiled_game(values), out)
        else:
            profiles[0].save(out)
    except (OSError, ValueError) as error:
        raise UsageError(f"{out}: {error}") from error
    print(f"{'game' if is_game else 'policy'} written to {out}")
    return 0
