"""Our own studies: how sure answers do, how many outliers are tolerated, and real data.

They run in the frame of `perpend.experiments` and are not installed. From a checkout:
``python -m studies NAME``.
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
NAMES, check_name, load = STUDIES.names, STUDIES.check_name, STUDIES.load
