"""The game of a saved file: what a file says about its game, and how the game is found again.

Files of checkpoints and policies hold the string of a game, its size and its fingerprint, but not the game. A file may come
from another person, so the string is not trusted: it must be short and name no file; with parameters it is tried first, see
`trial`; and the walk ends at the saved number of histories. Pass `game=`, or `max_histories=`, if that number is not to be
trusted.
"""

from __future__ import annotations

import dataclasses
import importlib
import os

import numpy as np
import pyspiel

from spiel_cfrplus._utils.archives import shortened
from spiel_cfrplus._utils.openspiel_output import silent_stderr
from spiel_cfrplus.game.checks import names_of_files
from spiel_cfrplus.game.sequence_form import SequenceFormGame, compile_game
from spiel_cfrplus.game.trial import fault_of
from spiel_cfrplus.game.walk_limits import WalkLimits

# Longer or more deeply nested strings are not passed to OpenSpiel, which would use unbounded memory and time.
_LONGEST_GAME_STRING = 4096
_DEEPEST_GAME_STRING = 8


@dataclasses.dataclass(frozen=True)
class SavedGame:
    """What a file says about its game.

    Attributes:
      path: the file.
      game, description: the string of the game, and its description for people.
      num_histories, fingerprint: of the game.
    """

    path: str | os.PathLike[str]
    game: str
    description: str
    num_histories: int
    fingerprint: str

    def compiled_game(
        self, game: pyspiel.Game | SequenceFormGame | None = None, max_histories: int | None = None
    ) -> SequenceFormGame:
        """The game of the file, compiled.

        Args:
          game: the game; by default `pyspiel.load_game` loads the saved string. Games without such a string (matrix games,
            `.efg` texts, unregistered Python games) and games that are read from files must be given.
          max_histories: refuse games with more histories than this. A game that is loaded from its string may have at most as
            many histories as the saved one.

        Raises:
          ValueError: the game differs from the saved one, cannot be loaded from its string, or is larger than
            `max_histories`.
        """
        if game is None:
            game = self.game_by_string(max_histories)
        game = compile_game(game, max_histories=max_histories)
        if game.fingerprint != self.fingerprint:
            raise ValueError(
                f"{self.path} was saved for a game other than {game.description}: {shortened(self.description)}, with other "
                "infostates or payoffs. Pass the game it was saved for as game="
            )
        return game

    def game_by_string(self, max_histories: int | None) -> SequenceFormGame:
        """Compiles the game of the saved string; refuses it if it is larger than the saved one.

        Raises:
          ValueError: see `compiled_game`.
        """
        game = self._load_game()
        WalkLimits.starting_now(max_histories).check_count(game, self.num_histories)
        try:
            return compile_game(game, max_histories=self.num_histories)
        except ValueError as error:
            raise ValueError(
                f"{self.path} was saved for a game other than {game}, or for a part of it: {error}. Pass the game it was saved "
                "for as game="
            ) from error

    def _load_game(self) -> pyspiel.Game:
        importlib.import_module("open_spiel.python.games")  # registers OpenSpiel's Python games
        problem = _problem_with(self.game)
        if problem is None:
            try:
                with silent_stderr():
                    return pyspiel.load_game(self.game)
            except (pyspiel.SpielError, RuntimeError, ValueError):
                problem = "pyspiel.load_game cannot load"
        raise ValueError(f"{self.path} was saved for {shortened(self.game)!r}, which {problem}; pass it as game=")


def _problem_with(game_string: str) -> str | None:
    """Why OpenSpiel must not load a string that another person may have written, or None."""
    if len(game_string) > _LONGEST_GAME_STRING:
        return f"has more than {_LONGEST_GAME_STRING} characters"
    depths = np.cumsum([(character == "(") - (character == ")") for character in game_string])
    if depths.max(initial=0) > _DEEPEST_GAME_STRING:
        return f"nests games more than {_DEEPEST_GAME_STRING} deep"
    try:
        with silent_stderr():
            parameters = pyspiel.game_parameters_from_string(game_string)
    except (pyspiel.SpielError, RuntimeError, ValueError):
        return "cannot be parsed"
    if files := names_of_files(parameters):
        return f"is read from {', '.join(map(repr, files))}"
    # With invalid parameters OpenSpiel may end the process or use all memory.
    fault = fault_of(lambda: pyspiel.load_game(game_string)) if len(parameters) > 1 else None
    return f"fails to load in another process ({fault})" if fault else None
