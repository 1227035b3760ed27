"""Solves a game with CFR or CFR+: python scripts/run.py --game=kuhn_poker (--help lists the flags)."""

from spiel_cfrplus import command_line

if __name__ == "__main__":
    command_line.main()
