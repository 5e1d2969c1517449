"""Our own studies (calibration, how many outliers are tolerated, real data), and all pages.

Studies run in the frame of `perpend.experiments`, and are not installed. From a checkout:
``python -m studies NAME``. ``python -m studies pages`` makes the Markdown pages, also those of the
paper's experiments, from results that are stored.
"""

from perpend.experiments import Catalogue

STUDIES = Catalogue(
    "python -m studies",
    {
        "calibration": "studies.calibration",
        "limits": "studies.limits",
        "real-data": "studies.real_data",
    },
)
