"""Everything perpend raises or warns about on purpose.

::

    PerpendError
    ├── InputError(ValueError)          data or a file that cannot be used: what, where, how to fix
    │   └── TooLargeError(MemoryError)  a file that needs more memory than there is
    ├── ClusterError(RuntimeError)      a cluster without workers or scheduler: what to do
    ├── DeviceMemoryError(MemoryError)  a GPU is full: what is needed, and what needs less
    ├── NumericalError(ArithmeticError) a non-finite value appeared during the computation
    ├── ModelFileError(ValueError)      a saved model that is damaged, foreign or too new
    ├── CheckpointError(ValueError)     a checkpoint that is damaged, or of another fit
    └── MissingExtraError(ImportError)  an optional package is needed: which, and how to install it

    UserWarning
    ├── CodimensionWarning              the codimension is not sure: why, and what would help
    ├── DriftWarning                    rows that arrive show another subspace: since when
    ├── MissingWarning                  rows have too few observed entries to be labelled: which
    └── UnitsWarning                    columns differ so much in size that their units decide

A solver that runs out of iterations warns with scikit-learn's ``ConvergenceWarning``.
"""

__all__ = [
    "CheckpointError",
    "ClusterError",
    "CodimensionWarning",
    "DeviceMemoryError",
    "DriftWarning",
    "InputError",
    "MissingExtraError",
    "MissingWarning",
    "ModelFileError",
    "NumericalError",
    "PerpendError",
    "TooLargeError",
    "UnitsWarning",
]


class PerpendError(Exception):
    """Base of all errors that perpend raises on purpose."""


class InputError(PerpendError, ValueError):
    """Data or a file that cannot be used; the message says what, where and what to do."""


class TooLargeError(InputError, MemoryError):
    """A file or fit needs more memory than it may take; the message says what needs less."""


class ClusterError(PerpendError, RuntimeError):
    """A cluster has lost its workers or its scheduler; the message says what to do."""


class DeviceMemoryError(PerpendError, MemoryError):
    """A device has too little memory; the message says what is needed and what would need less."""


class NumericalError(PerpendError, ArithmeticError):
    """A non-finite value appeared during the computation."""


class ModelFileError(PerpendError, ValueError):
    """A saved model that is damaged, foreign, or written by a newer version."""


class CheckpointError(PerpendError, ValueError):
    """A checkpoint that is damaged, or of another fit; the message says what differs."""


class MissingExtraError(PerpendError, ImportError):
    """An optional package is needed; the message says which and how to install it."""


def of_earlier_version(stored: str) -> InputError:
    """Return the error for a loaded model that lacks something; `stored` says what its file has."""
    return InputError(
        f"This model was saved by an earlier version, which stored {stored}. Fit it again."
    )


class CodimensionWarning(UserWarning):
    """The recovered codimension is not sure; the message says why and what would help."""


class DriftWarning(UserWarning):
    """Rows that arrive show another subspace than those before; the message says since when."""


class UnitsWarning(UserWarning):
    """Columns differ so much in size that their units decide; the message says what to do."""


class MissingWarning(UserWarning):
    """Rows have too few observed entries to be labelled; the message says which."""
