"""Pictures: plain arrays in, matplotlib figures out.

*Displays*, as in scikit-learn, show a fitted model: ``from_estimator`` draws it, ``plot(ax=...)``
draws onto given axes, and `description` says in words what the picture shows. The functions draw
several panels from plain arrays.

matplotlib is imported inside the functions, so only drawing needs it. Without axes, a display makes
its figure with pyplot, as in scikit-learn: ``plt.show()`` shows it. The figures of the functions
need no screen and no global state. `save` writes either as PNG and SVG.
"""

from perpend._deprecation import renamed_names
from perpend._docs import complete
from perpend.plots._angles import PrincipalAnglesDisplay
from perpend.plots._cloud import CloudDisplay
from perpend.plots._comparison import ComparisonDisplay
from perpend.plots._convergence import ConvergenceDisplay
from perpend.plots._display import Display, ModelDisplay
from perpend.plots._distances import DistanceDisplay
from perpend.plots._heat import DistanceMapDisplay
from perpend.plots._lines import curves, dots, estimates_against_truth
from perpend.plots._maps import PhaseTransitionDisplay, heatmaps, images
from perpend.plots._mask import MaskDisplay
from perpend.plots._profile import ProfileDisplay
from perpend.plots._reliability import ReliabilityDisplay, reliability
from perpend.plots._spectrum import SpectrumDisplay, SpreadDisplay
from perpend.plots._sphere import OnSphere, sphere
from perpend.plots._style import COLORS, figure, require_matplotlib, save
from perpend.plots._summary import SummaryDisplay
from perpend.plots._words import verdict

__all__ = [
    "COLORS",
    "CloudDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "Display",
    "DistanceDisplay",
    "DistanceMapDisplay",
    "MaskDisplay",
    "OnSphere",
    "PhaseTransitionDisplay",
    "PrincipalAnglesDisplay",
    "ProfileDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "SpreadDisplay",
    "SummaryDisplay",
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
    "verdict",
]

__getattr__ = renamed_names(__name__, {"AnswerDisplay": "SummaryDisplay"}, until="0.4")

_EXPLAINED = {
    "model": "a fitted method of perpend\n",
    "X": """array-like of shape (n_samples, n_features), optional
Rows whose distances are drawn instead of those of the fit; other displays ignore them.
""",
    "ax": """matplotlib.axes.Axes, optional
Where to draw; by default a new figure, which ``plt.show()`` shows.
""",
    "title": "str\nOf the picture.\n",
    "xlabel": "str\nOf the horizontal axis.\n",
    "ylabel": "str\nOf the vertical axis.\n",
    "xlim": "pair of float, optional\nEnds of the horizontal axis.\n",
    "ylim": "pair of float, optional\nEnds of the vertical axis.\n",
    "columns": "int, optional\nPanels in a row.\n",
    "cmap": "str\nThe name of matplotlib's map of colours.\n",
    "return Self": "the display itself\n    Its `ax_` and `figure_` are set once it is drawn.",
    "return Any": "matplotlib.figure.Figure",
}
complete([ModelDisplay, *(globals()[name] for name in __all__)], _EXPLAINED)
