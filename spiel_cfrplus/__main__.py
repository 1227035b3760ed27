"""Solves a game, or runs a subcommand: python -m spiel_cfrplus --game=kuhn_poker (--help lists the flags)."""

from spiel_cfrplus.cli import entry_point

if __name__ == "__main__":
    entry_point.main()
