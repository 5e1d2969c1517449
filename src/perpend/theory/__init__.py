"""Quantities of the theory of DPCP."""

from perpend.theory.constants import average_height

__all__ = ["average_height"]
