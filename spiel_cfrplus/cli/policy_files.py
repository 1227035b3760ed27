"""The policies that subcommands read: files, and the flags that say which game they are for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from absl import flags

from spiel_cfrplus.cli.errors import UsageError
from spiel_cfrplus.cli.games import compile_with_notes, define, import_modules, load_game
from spiel_cfrplus.game.sequence_form import SequenceFormGame
from spiel_cfrplus.game.size_estimate import LargeGameWarning
from spiel_cfrplus.game.walk_limits import WalkLimits
from spiel_cfrplus.policies.profile import StrategyProfile
from spiel_cfrplus.policies.reading import load_policy

UNIFORM = "uniform"


def define_game(values: flags.FlagValues) -> None:
    """Defines the flags that `load` and `compiled_game` read."""
    define(values)
    flags.DEFINE_integer("max_histories", None, "Refuse games with more histories than this.", 1, flag_values=values)
    flags.DEFINE_string("cache", None, "Directory in which the walk through --game is cached.", flag_values=values)


def load(paths: Sequence[str], values: flags.FlagValues) -> list[StrategyProfile]:
    """The policies in files, all of one game: that of `--game`, or else the one that the first file names.

    Args:
      paths: the files; "uniform" stands for the uniform policy.
      values: the flags.

    Raises:
      UsageError: a file cannot be read, has a policy of another game or none, or the game cannot be compiled.
    """
    game = None
    if values.game is not None:
        game = compiled_game(values)
    elif values.players is not None or values.cache is not None:
        raise UsageError(f"--{'players' if values.players is not None else 'cache'} has no effect without --game")
    else:
        import_modules(values["import"].value or ())
    loaded = {}
    for path in dict.fromkeys(paths):
        if path != UNIFORM:
            loaded[path] = _load(path, game, values.max_histories)
            game = loaded[path].game
    if UNIFORM in paths:
        if game is None:
            raise UsageError(f"{UNIFORM}: which game? Pass --game or the file of a policy")
        loaded[UNIFORM] = StrategyProfile.uniform(game)
    return [loaded[path] for path in paths]


def compiled_game(values: flags.FlagValues) -> SequenceFormGame:
    """The game of `--game`, compiled.

    Raises:
      UsageError: it cannot be loaded or compiled.
    """
    game = load_game(values.game, values.players, values["import"].value or ())
    return compile_with_notes(game, WalkLimits.starting_now(values.max_histories), cache=values.cache)


def _load(path: str, game: SequenceFormGame | None, max_histories: int | None) -> StrategyProfile:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LargeGameWarning)  # the game was walked before the policy was saved
            return load_policy(path, game, max_histories=max_histories)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(str(error).replace("as game=", "with --game=")) from error


def checked(arguments: Sequence[str], numbers: Sequence[int], usage: str) -> Sequence[str]:
    """The arguments, if their number is one of `numbers`.

    Raises:
      UsageError: it is not.
    """
    if len(arguments) not in numbers:
        got = f"got {len(arguments)}: {' '.join(arguments)}" if arguments else "got none"
        raise UsageError(f"expected {' or '.join(map(str, numbers))} arguments, {got}; usage: spiel-cfrplus {usage}")
    return arguments
