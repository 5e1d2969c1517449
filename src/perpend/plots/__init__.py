"""Pictures: plain arrays in, matplotlib figures out.

matplotlib is imported inside the functions, so that it is needed only by those who draw. The
figures belong to no display and no global state; `save` writes them as PNG and SVG.
"""

from perpend.plots._dots import dots
from perpend.plots._lines import curves, estimates_against_truth
from perpend.plots._maps import heatmaps, images
from perpend.plots._reliability import reliability
from perpend.plots._sphere import OnSphere, sphere
from perpend.plots._style import COLORS, figure, require_matplotlib, save

__all__ = [
    "COLORS",
    "OnSphere",
    "curves",
    "dots",
    "estimates_against_truth",
    "figure",
    "heatmaps",
    "images",
    "reliability",
    "require_matplotlib",
    "save",
    "sphere",
]
