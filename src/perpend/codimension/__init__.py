"""How many of the directions are normals: evidence in, a number with a confidence out."""

from perpend.codimension.answer import Answer, as_solution, find_answer, n_inside
from perpend.codimension.certificate import Certificate, certify, distinct_shares
from perpend.codimension.confidence import weigh_no_normals
from perpend.codimension.confirm import confirm
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.directions import RankEvidence, rank_of_directions
from perpend.codimension.found import Found
from perpend.codimension.growth import grow_starts
from perpend.codimension.result import SURE, Codimension
from perpend.codimension.sampling import sample_sizes
from perpend.codimension.search import Descent, search
from perpend.codimension.spectrum import SpectralGap, largest_gap
from perpend.codimension.told import solve_told
from perpend.codimension.watch import Watch

__all__ = [
    "SURE",
    "Answer",
    "Certificate",
    "Codimension",
    "Descent",
    "Found",
    "Judge",
    "Judgement",
    "RankEvidence",
    "SpectralGap",
    "Watch",
    "as_solution",
    "certify",
    "confirm",
    "distinct_shares",
    "find_answer",
    "grow_starts",
    "largest_gap",
    "n_inside",
    "rank_of_directions",
    "sample_sizes",
    "search",
    "solve_told",
    "weigh_no_normals",
]
