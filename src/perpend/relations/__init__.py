"""The relations between columns that a fitted model has found, as readable equations."""

from perpend.relations.equation import Broken, Equation, Equations, equations

__all__ = ["Broken", "Equation", "Equations", "equations"]
