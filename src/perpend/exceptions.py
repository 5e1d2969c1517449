"""Everything perpend raises or warns about on purpose.

::

    PerpendError
    ├── InputError(ValueError)          data or a file that cannot be used: what, where, how to fix
    │   └── TooLargeError(MemoryError)  a file that needs more memory than there is
    ├── DeviceMemoryError(MemoryError)  a GPU is full: what is needed, and what needs less
    ├── NumericalError(ArithmeticError) a non-finite value appeared during the computation
    ├── ModelFileError(ValueError)      a saved model that is damaged, foreign or too new
    └── MissingExtraError(ImportError)  an optional package is needed: which, and how to install it

    UserWarning
    ├── CodimensionWarning              the codimension is not sure: why, and what would help
    ├── MissingWarning                  rows have too few observed entries to be labelled: which
    └── UnitsWarning                    columns differ so much in size that their units decide

A solver that runs out of iterations warns with scikit-learn's ``ConvergenceWarning``.
"""

__all__ = [
    "CodimensionWarning",
    "DeviceMemoryError",
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
    """A file needs more memory than there is; the message says how much, and what needs less."""


class DeviceMemoryError(PerpendError, MemoryError):
    """A device has too little memory; the message says what is needed and what would need less."""


class NumericalError(PerpendError, ArithmeticError):
    """A non-finite value appeared during the computation."""


class ModelFileError(PerpendError, ValueError):
    """A saved model that is damaged, foreign, or written by a newer version."""


class MissingExtraError(PerpendError, ImportError):
    """An optional package is needed; the message says which and how to install it."""


def of_earlier_version(kept: str) -> InputError:
    """Return the error for a loaded model that lacks something; `kept` says what its file has."""
    return InputError(
        f"This model is from a file of an earlier version, which kept {kept}. Fit it again."
    )


class CodimensionWarning(UserWarning):
    """The recovered codimension is not sure; the message says why and what would help."""


class UnitsWarning(UserWarning):
    """Columns differ so much in size that their units decide; the message says what to do."""


class MissingWarning(UserWarning):
    """Rows have too few observed entries to be labelled; the message says which."""
