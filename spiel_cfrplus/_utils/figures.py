"""Figures that notebooks display. Importing this module imports matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class DisplayedFigure(Figure):
    """A figure that notebooks display as an image, although `matplotlib.pyplot` does not know it."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()
