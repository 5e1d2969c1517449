"""Catalogue of bad inputs: what may go wrong, with the exit code and the words it must end in."""

from cli.bad_inputs import models, numpy_files, options, paths, scenes, text_files
from cli.bad_inputs._case import Case

CASES: tuple[Case, ...] = (
    *numpy_files.CASES,
    *text_files.CASES,
    *models.CASES,
    *scenes.CASES,
    *paths.CASES,
    *options.CASES,
)

__all__ = ["CASES", "Case"]
