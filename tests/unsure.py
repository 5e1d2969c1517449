"""A plugin of pytest, ``-p unsure``: no decision is ever sure. For `test_mutation.py`."""

import sys

from perpend.structure import checks

weigh = checks.confidence_of


def never_sure(facts):
    """Return a confidence of at most one half, and at least one doubt."""
    confidence, doubts = weigh(facts)
    return min(confidence, 0.5), doubts or (checks.Doubt("unsure", "nothing is sure", "nothing"),)


def pytest_configure():
    """Replace the function wherever it has been imported; pytest calls this of plugins alone."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("perpend.") and getattr(module, "confidence_of", None) is weigh:
            module.confidence_of = never_sure
