"""Entry point of the command. It handles signals before the imports, which take a second or more."""

import gc
import sys

from spiel_cfrplus.cli import stop_signals


def main() -> None:
    """Entry point of `scripts/run.py`, of `python -m spiel_cfrplus` and of the installed command."""
    stop_signals.end_at_once()
    gc.disable()  # until `program.prepare`: imports create many objects, and none that a collection could free
    from spiel_cfrplus.cli import subcommands

    name = sys.argv[1] if len(sys.argv) > 1 else subcommands.SOLVE
    if subcommands.is_subcommand(name):
        subcommands.main(name, sys.argv[2:])
    if name == subcommands.SOLVE and len(sys.argv) > 1:
        del sys.argv[1]
    from spiel_cfrplus.cli import main  # the long import

    main.main()
