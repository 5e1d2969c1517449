"""How many of the directions are normals: evidence in, a number with a confidence out."""

from perpend.codimension.answer import Answer, as_solution, find_answer, n_inside
from perpend.codimension.by_scales import decision_evidence, structures_in
from perpend.codimension.certificate import Certificate, certify, distinct_rows
from perpend.codimension.confidence import weigh_no_normals
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.directions import RankEvidence, rank_of_directions
from perpend.codimension.found import Found
from perpend.codimension.growth import grow_starts
from perpend.codimension.result import DOUBTFUL, SURE, Codimension
from perpend.codimension.sampling import Look, by_sample, sample_sizes, size_for_low_dimension
from perpend.codimension.search import Descent, search, search_low_dimension
from perpend.codimension.spectrum import SpectralGap, largest_gap
from perpend.codimension.told import solve_told
from perpend.codimension.watch import Watch

__all__ = [
    "DOUBTFUL",
    "SURE",
    "Answer",
    "Certificate",
    "Codimension",
    "Descent",
    "Found",
    "Judge",
    "Judgement",
    "Look",
    "RankEvidence",
    "SpectralGap",
    "Watch",
    "as_solution",
    "by_sample",
    "certify",
    "decision_evidence",
    "distinct_rows",
    "find_answer",
    "grow_starts",
    "largest_gap",
    "n_inside",
    "rank_of_directions",
    "sample_sizes",
    "search",
    "search_low_dimension",
    "size_for_low_dimension",
    "solve_told",
    "structures_in",
    "weigh_no_normals",
]
