"""Entry point of the command. It handles signals before the imports, which take a second or more."""

from spiel_cfrplus.cli import stop_signals


def main() -> None:
    """Entry point of `scripts/run.py` and of the installed command."""
    stop_signals.end_at_once()
    from spiel_cfrplus.cli import main  # the long import

    main.main()
