"""The relations between columns that a fitted model has found, as readable equations."""

from perpend.relations.equation import Broken, Equation, Equations, equations, equations_apart

__all__ = ["Broken", "Equation", "Equations", "equations", "equations_apart"]
