"""Our own studies (calibration, how many outliers are tolerated, boards), and all pages.

Studies run in the frame of `perpend.experiments`, and are not installed. From a checkout:
``python -m studies NAME``. ``python -m studies boards`` runs the boards: data that people have,
perpend beside other methods. ``python -m studies pages`` makes the Markdown pages, also those of
the paper's experiments, from results that are stored.
"""

from perpend.experiments import Catalogue

BOARDS = ("tables", "scenes", "planes", "rooms", "homographies", "classics", "faces")
STUDIES = Catalogue(
    "python -m studies",
    {
        "calibration": "studies.calibration",
        "limits": "studies.limits",
        **{f"boards/{name}": f"studies.boards.{name}" for name in BOARDS},
    },
)
