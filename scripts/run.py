"""Solves a game with CFR or CFR+: python scripts/run.py --game=kuhn_poker (--help lists the flags)."""

from spiel_cfrplus.cli import entry_point

if __name__ == "__main__":
    entry_point.main()
