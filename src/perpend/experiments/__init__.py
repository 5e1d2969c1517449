"""The paper's figures and tables, and every comparison that we publish.

One file each, which defines ``EXPERIMENT``; results are stored, pictures and pages are made from
what is stored. ``perpend reproduce NAME`` runs them. This package is light until one is loaded.
"""

import difflib
from importlib import import_module

from perpend.exceptions import InputError
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables

__all__ = [
    "NAMES",
    "Case",
    "Experiment",
    "Results",
    "Row",
    "Settings",
    "Tables",
    "check_name",
    "load",
]

NAMES = {
    "implicit-bias": "perpend.experiments.implicit_bias",
    "phase-transition": "perpend.experiments.phase_transition",
    "limits": "perpend.experiments.limits",
    "codimension": "perpend.experiments.codimension",
    "hyperspectral": "perpend.experiments.hyperspectral",
    "convergence": "perpend.experiments.convergence",
    "theory": "perpend.experiments.theory",
    "calibration": "perpend.experiments.calibration",
    "real-data": "perpend.experiments.real_data",
}
"""The module of each experiment, in the order of the joint page."""


def check_name(name: str) -> None:
    """Raise InputError for a name that no experiment has."""
    if name in NAMES:
        return
    close = difflib.get_close_matches(name.lower().replace("_", "-"), NAMES, n=1, cutoff=0.4)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"no experiment is called {name!r}.{hint} There are: {', '.join(NAMES)}.")


def load(name: str) -> Experiment:
    """Import an experiment.

    Parameters
    ----------
    name : str
        One of `NAMES`; another one raises InputError.
    """
    check_name(name)
    experiment: Experiment = import_module(NAMES[name]).EXPERIMENT
    return experiment
