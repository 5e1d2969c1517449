"""Our own studies (calibration, many outliers, the field, boards), and all pages.

Studies run in the frame of `perpend.experiments`, and are not installed. From a checkout:
``python -m studies NAME``. ``python -m studies boards`` runs the boards: data that people have,
perpend beside other methods. ``python -m studies pages`` makes the Markdown pages, also those of
the paper's experiments, from results that are stored.
"""

from perpend.experiments import Catalogue

BOARDS = ("tables", "scenes", "planes", "rooms", "crops", "homographies", "classics", "faces")
STUDIES = Catalogue(
    "python -m studies",
    {
        "calibration": "studies.calibration",
        "limits": "studies.limits",
        "field": "studies.field.field",
        "sweep": "studies.field.sweep",
        **{f"boards/{name}": f"studies.boards.{name}" for name in BOARDS},
    },
)
