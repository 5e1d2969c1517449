"""What a method can do, stated once in its class as `capabilities`.

The table of methods and the cards in the docs, the command line, `perpend compare` and the skips of
the common tests read it.
"""

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
    "dual": "normals are sought, by the sum of distances",
    "reweighted": "second moments with weights, solved again and again",
    "geodesic": "steps along the manifold of subspaces",
    "spectral": "second moments, once",
    "samples": "small random samples of the rows are tried",
    "convex": "a convex relaxation of rank and outliers",
    "graph": "rows are compared with one another",
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
    memory: str = "D²"  # beside the rows themselves
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
