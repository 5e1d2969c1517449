"""The paper's figures and tables.

One file each, which defines ``EXPERIMENT``; results are stored, and pictures are drawn from what is
stored. ``perpend reproduce NAME`` runs them. ``studies/``, which is not installed, has our own
studies, run by the same frame, and makes the pages. This package is light until an experiment is
loaded.
"""

import difflib
from dataclasses import dataclass, field
from importlib import import_module

from perpend.exceptions import InputError
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables

__all__ = [
    "NAMES",
    "PAPER",
    "Case",
    "Catalogue",
    "Experiment",
    "Results",
    "Row",
    "Settings",
    "Tables",
    "load",
]


@dataclass(frozen=True)
class Catalogue:
    """Experiments that one command runs."""

    command: str  # what stands before the name of an experiment
    names: dict[str, str]  # the module of each, in the order in which they are run and shown
    elsewhere: dict[str, str] = field(default_factory=dict)  # how other commands' are run, by name

    def check_name(self, name: str) -> None:
        """Raise InputError for a name that no experiment has."""
        if name in self.names:
            return
        plain = name.lower().replace("_", "-")
        if plain in self.elsewhere:
            raise InputError(f"{plain!r} is not run by this command. {self.elsewhere[plain]}")
        close = difflib.get_close_matches(plain, self.names, n=1, cutoff=0.4)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        there = ", ".join(self.names)
        raise InputError(f"no experiment is called {name!r}.{hint} There are: {there}.")

    def load(self, name: str) -> Experiment:
        """Import an experiment by its name; one that is not there raises InputError."""
        self.check_name(name)
        experiment: Experiment = import_module(self.names[name]).EXPERIMENT
        return experiment


PAPER = Catalogue(
    "perpend reproduce",
    {
        "implicit-bias": "perpend.experiments.implicit_bias",
        "phase-transition": "perpend.experiments.phase_transition",
        "codimension": "perpend.experiments.codimension",
        "hyperspectral": "perpend.experiments.hyperspectral",
        "convergence": "perpend.experiments.convergence",
        "theory": "perpend.experiments.theory",
    },
    {
        name: "It is a study of our own and not installed; from a checkout of perpend, run: "
        f"python -m studies {'boards' if name == 'real-data' else name}"
        for name in ("calibration", "limits", "boards", "real-data")
    },
)
NAMES, load = PAPER.names, PAPER.load
