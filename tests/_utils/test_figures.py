"""Figures that notebooks display."""

import struct

from spiel_cfrplus._utils.figures import DisplayedFigure


def test_a_figure_is_a_png_of_100_pixels_per_inch():
    image = DisplayedFigure(figsize=(2, 1))._repr_png_()
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", image[16:24]) == (200, 100)  # the first chunk of the format: width and height
