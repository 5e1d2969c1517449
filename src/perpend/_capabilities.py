"""What a method can do, stated once in its class as `capabilities`.

The table of methods and the cards in the docs, the command line, `perpend compare` and the skips of
the common tests read it.
"""

from math import prod
from typing import Literal, NamedTuple, TypeAlias

Need: TypeAlias = Literal["dimension", "threshold", "share", "rows", "weight"]
NEEDS: dict[str, str] = {
    "dimension": "codimension or dimension",
    "threshold": "threshold",
    "share": "share of outliers",
    "rows": "number of rows that are surely inliers",
    "weight": "weight of a penalty",
}
"""What a method may have to be given; only what it cannot choose itself."""

FAMILIES = {
    "dual": "a search for normals, by the sum of distances",
    "reweighted": "iteratively reweighted second moments",
    "geodesic": "steps along the manifold of subspaces",
    "spectral": "second moments, once",
    "samples": "random samples of a few rows",
    "convex": "a convex relaxation of rank and outliers",
    "graph": "comparisons of every two rows",
}


class Capabilities(NamedTuple):
    """What a method needs, does and costs, for tables and tests."""

    solves: str = ""  # the problem, a few words without a full stop; "": the class says it
    needs: tuple[Need, ...] = ("dimension",)  # keys of NEEDS; () if it needs nothing
    family: str = ""  # a key of FAMILIES
    cost: str = ""  # of one iteration, in n rows, D features, d dimensions, c normals
    regime: str = ""  # where it is the one to use
    guarantee: str = ""  # one sentence, with its full stop
    reference: str = ""  # authors and year
    affine: Literal["lifted", "centred", "own", "none"] = "lifted"  # how affine=True is solved
    out_of_sample: bool = True  # whether new rows get labels and scores
    subspace: bool = True  # whether it finds normals and components
    memory: str = "D²"  # numbers kept beside the rows themselves: sum of products of sizes
    time: str = "3e-9 n D² + 1e-8 D³"  # seconds of a whole fit on one core, very roughly
    backends: tuple[str, ...] = ("numpy", "torch")  # whose arrays it computes on
    iterates: bool = True  # whether the callback and the history see its steps
    tolerates_most: bool = False  # whether most rows may be outliers while c is small

    @property
    def needs_dimension(self) -> bool:
        """Whether the codimension or the dimension must be given."""
        return "dimension" in self.needs

    @property
    def given(self) -> str:
        """What a user must give, in words."""
        return " and ".join(NEEDS[need] for need in self.needs) or "nothing"

    def numbers(self, **sizes: float) -> float:
        """How many numbers it keeps, by `memory`, for given n, D, c, d, k and min(c,d).

        >>> Capabilities(memory="D² + n^1.5").numbers(n=100, D=20)
        1400.0
        """
        return value(self.memory, **sizes)

    def seconds(self, **sizes: float) -> float:
        """How long a fit takes on one core, by `time`, within a factor of a few.

        >>> Capabilities(time="2e-3 n D + 1").seconds(n=100, D=20)
        5.0
        """
        return value(self.time, **sizes)


def value(formula: str, **sizes: float) -> float:
    """Return a sum of products of numbers and powers of sizes, as in "2e-9 n D² + n^1.5".

    >>> value("2e-1 n² + 3", n=10)
    23.0
    """
    for digit, power in zip("²³", "23", strict=True):
        formula = formula.replace(digit, f"^{power}")

    def factor(text: str) -> float:
        name, _, power = text.partition("^")
        return sizes[name] ** float(power or 1) if name in sizes else float(name)

    return float(sum(prod(map(factor, term.split())) for term in formula.split(" + ")))
