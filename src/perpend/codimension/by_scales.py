"""The answer where the descents are not clear: at which scale rows concentrate.

`perpend.structure` looks at a sample in memory, and all rows confirm what it decides. Only one of
its doubts is cured by more rows: that what it sees could be an accident.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from perpend._typing import Array
from perpend.codimension.answer import as_answer, in_whole_space
from perpend.codimension.certificate import ALL_ROWS, certify, distinct_rows
from perpend.codimension.confidence import MISFIT_LIMIT, about_rows
from perpend.codimension.decision import SAME, Judge
from perpend.codimension.exact_span import doubted_noise
from perpend.codimension.found import Found
from perpend.codimension.result import DOUBTFUL, SURE, Codimension
from perpend.codimension.spectrum import largest_gap
from perpend.rows import RowSource
from perpend.solvers import (
    Fit,
    RowSpan,
    TwoGroups,
    distance_edges,
    fit_from_spectrum,
    in_their_span,
    turned_to,
)
from perpend.solvers.loop import Callback
from perpend.structure import Axes, Cloud, Decision, find_structure, sample_size
from perpend.structure import constants as k
from perpend.structure.confirm import confirm
from perpend.structure.layers import Histogram, find_layers

SAME_NOISE = 1.5  # ratio up to which two estimates of the noise are of the same rows
HOLLOW = 4.0  # standard deviations
OVERLAP = 0.12  # of the labels: more would be wrong in any case,
OVERLAP_ROUGH = 0.25  # or so many, where the estimate is rough
NO_SUBSPACE = 0.5  # of the squared norm: so much noise is none, but the whole cloud
FIRST_SIZES = 3  # codimensions from which reweighting looks before any path
MAX_SWEEP = 120  # steps of reweighting from a start that is hardly better than chance


def by_scales(
    rows: RowSource, plain: Found, rng: np.random.Generator, callback: Callback | None = None
) -> Found:
    """Return the structure that the rows show, or the plain answer where they show none."""
    turned, span = in_their_span(rows)
    if span.rank < 2 or turned.shape[0] <= span.rank + 1:
        return plain
    distinct = distinct_rows(rows, rng)
    found = _decide(turned, span, distinct.share, plain, rng=rng, callback=callback)
    cloud, decision = found or (None, None)
    most = NO_SUBSPACE * float(np.median(rows.norms)) ** 2
    # Beside a larger subspace that holds all rows exactly, only a smaller one that does counts.
    on_span = plain.sure and plain.answer.fit is None
    unlikely = decision is not None and on_span and not _is_exact_and_sure(decision)
    if cloud is None or decision is None or unlikely or decision.sigma**2 * span.rank > most:
        return _at_rest(plain, Judge(turned, span, distinct, refine=True, callback=callback))
    return answer_of(turned, span, decision, plain, n_distinct=cloud.n, callback=callback)


def _is_exact_and_sure(decision: Decision) -> bool:
    return decision.is_exact and decision.confidence >= SURE


def _at_rest(plain: Found, judge: Judge) -> Found:
    """Return the plain answer, finished if it was left on its way."""
    fit = plain.answer.fit
    if fit is None or fit.converged:
        return plain
    done = judge.consider(fit.V, plain.answer.evidence)
    return plain._replace(answer=as_answer(judge.span, done), converged=done.fit.converged)


def hides_a_layer(found: Found) -> bool:
    """Say whether something thinner may be inside a sure answer.

    The inliers' distances may be those of two kinds of rows; or nearly all rows are inliers, with
    noise, or the outliers have directions of their own: with a slab it would be so, whose normals
    need not show what is inside.
    """
    fit = found.answer.fit
    if fit is None:  # all rows lie on their span, and where that is large some may lie on less
        return 0 < found.span.n_outside < found.span.rank
    if fit.groups.is_exact:
        return False
    groups = fit.groups
    misfit = found.answer.codimension.evidence["outlier_misfit"]
    assert isinstance(misfit, float)
    if groups.share > ALL_ROWS or misfit > MISFIT_LIMIT:
        return True
    seen = Histogram(groups.edges, groups.counts)
    least, inside = k.FEW * float(groups.counts.sum()), 1.1 * groups.threshold
    return bool(find_layers(seen, fit.V.shape[1], least, r_max=inside))


def _decide(
    rows: RowSource,
    span: RowSpan,
    share: Array,
    plain: Found,
    *,
    rng: np.random.Generator,
    callback: Callback | None,
) -> tuple[Cloud, Decision] | None:
    n, size = rows.shape[0], sample_size(span.rank)
    present = np.flatnonzero(share > 0)
    chosen = present
    if len(present) > size:
        chosen = np.sort(rng.choice(present, size, replace=False, shuffle=False))
    cloud = _cloud(rows, span, share, chosen)
    fit, n_distinct = plain.answer.fit, float(share.sum())
    proposals = iter([] if fit is None else [_proposal(fit, span)])
    wide, sizes = span.rank > k.WIDE, sweep_sizes(span.rank)
    if wide:  # paths take long there, and reweighting is quick where it leads anywhere
        near = 1 if fit is None else fit.V.shape[1]
        sizes = sorted(sizes, key=lambda size: abs(np.log(size / near)))
        first = _from_spectrum(rows, span, sizes[:FIRST_SIZES], n_distinct, callback=callback)
        proposals = chain(proposals, first)
    decision = find_structure(cloud, rng, proposals=proposals, callback=callback)
    if decision is None and n <= k.MOST_PER_COLUMN * span.rank:
        cloud = _cloud(rows, span, share, present)
        rest = sizes[FIRST_SIZES:] if wide else []
        spectral = _from_spectrum(rows, span, rest, n_distinct, callback=callback)
        decision = find_structure(cloud, rng, proposals=spectral, slowly=True, callback=callback)
    return None if decision is None else (cloud, decision)


def _from_spectrum(
    rows: RowSource,
    span: RowSpan,
    sizes: list[int],
    n_distinct: float,
    *,
    callback: Callback | None,
) -> Iterator[Axes]:
    """Propose what reweighting finds from the axes of least variance, at these codimensions."""
    for c in sizes:
        fit = fit_from_spectrum(
            rows, span, c, max_iter=MAX_SWEEP, n_distinct=n_distinct, callback=callback
        )
        yield _proposal(fit, span)


def sweep_sizes(rank: int) -> list[int]:
    """Return the codimensions from which to look, each at most 1.5 times the last.

    >>> sweep_sizes(30)
    [1, 2, 3, 4, 6, 8, 12, 16, 24]
    """
    sizes = {m * 2**j for j in range(rank.bit_length()) for m in (1, 3)} | {2}
    return sorted(size for size in sizes if size < rank)


def _cloud(rows: RowSource, span: RowSpan, share: Array, chosen: Array) -> Cloud:
    X = rows.take(chosen).astype(float)
    if X.shape[1] > span.rank:
        X = X @ span.basis
    weight = rows.gather(rows.weights)[chosen].astype(float)
    floor = float(distance_edges(1.0, rows.dtype)[0])
    mean = float(np.mean(weight))
    return Cloud(X, affine=False, weight=weight / mean, share=share[chosen], floor=floor)


def _proposal(fit: Fit, span: RowSpan) -> Axes:
    """Return the axes of the plain answer in coordinates of the span."""
    A = fit.axes if len(fit.axes) == span.rank else span.basis.T @ fit.axes
    return Axes(np.zeros(span.rank), A, fit.spectrum)


def answer_of(
    rows: RowSource,
    span: RowSpan,
    decision: Decision,
    plain: Found,
    *,
    n_distinct: float,
    callback: Callback | None,
) -> Found:
    """Confirm a decision by all rows, which are as they are solved, and put the answer together."""
    V = decision.axes.A[:, : decision.codimension]
    V = V if len(span.basis) == span.rank else span.basis @ V
    if decision.is_exact:
        return _exact_answer(rows, span, V, decision, plain, n_distinct=n_distinct)
    fit, holds = _by_the_law(rows, span, _finished(rows, span, V, decision, callback))
    # Where the outliers follow no law, the share of wrong labels is a rough estimate.
    about_rows = tuple(_about_rows(rows, span, fit, OVERLAP if holds else OVERLAP_ROUGH))
    codimension = Codimension(
        decision.codimension,
        min(decision.confidence, DOUBTFUL) if about_rows else decision.confidence,
        decision_evidence(decision, fit.spectrum, fit.groups, rows.dtype),
        (*(str(doubt) for doubt in decision.doubts), *about_rows),
        about_rows,
    )
    codimension = doubted_noise(span, n_distinct, fit.groups, codimension)
    return plain._replace(
        answer=in_whole_space(span, codimension, fit),
        span=span,
        n_distinct=n_distinct,
        converged=True,
        distances=None,
        decision=decision,
        structures=structures_in(decision, rows.unit, rows.shape[0] / n_distinct, span.n_outside),
    )


def _exact_answer(
    rows: RowSource,
    span: RowSpan,
    V: Array,
    decision: Decision,
    plain: Found,
    *,
    n_distinct: float,
) -> Found:
    """Answer where members have no noise: the subspace may run through a few rows by accident.

    Following the inliers' spectrum takes out rows that hold one of its dimensions alone.
    """
    judge = Judge(rows, span, distinct_rows(rows, np.random.default_rng(0)), refine=True)
    followed = judge.follow(V, None)
    codimension = followed.codimension
    if codimension.value == decision.codimension:
        numbers = decision_evidence(
            decision, followed.fit.spectrum, followed.fit.groups, rows.dtype
        )
        doubts = tuple(str(doubt) for doubt in decision.doubts)
        codimension = Codimension(codimension.value, decision.confidence, numbers, doubts)
    codimension = doubted_noise(span, n_distinct, followed.fit.groups, codimension)
    return plain._replace(
        answer=in_whole_space(span, codimension, followed.fit),
        span=span,
        n_distinct=n_distinct,
        converged=followed.fit.converged,
        distances=None,
        decision=decision,
        structures=structures_in(decision, rows.unit, rows.shape[0] / n_distinct, span.n_outside),
    )


def _by_the_law(rows: RowSource, span: RowSpan, fit: Fit) -> tuple[Fit, bool]:
    """Tell the groups apart by the law of outliers without preferred direction, where it holds.

    Where the same subspace has the same noise by it, and the outliers' distances follow it, it says
    more about them than the density around the subspace alone. Also says whether it holds.
    """
    judge = Judge(rows, span, distinct_rows(rows, np.random.default_rng(0)), refine=True)
    other = judge.consider(fit.V, None)
    groups = other.fit.groups
    alike = abs(np.log(groups.scale / fit.groups.scale)) <= np.log(SAME_NOISE)
    same = other.fit.converged and turned_to(other.fit.V, fit.axes) <= SAME
    holds = other.certificate.misfit <= MISFIT_LIMIT
    better = alike and same and holds and groups.share <= ALL_ROWS
    return other.fit if better else fit, holds


def _about_rows(rows: RowSource, span: RowSpan, fit: Fit, overlap: float) -> list[str]:
    """Return the doubts about noise, groups and rows: as true where the codimension was told."""
    share = np.ones(rows.shape[0])
    certificate = certify(rows, fit.V, fit.groups, span.rank - fit.V.shape[1], share)
    # Whether outliers have directions of their own does not matter to scales, nor the law of the
    # noise, as long as it is densest on the subspace.
    certificate = certificate._replace(misfit=0.0, is_noise=not _is_hollow(fit))
    return about_rows(fit, certificate, rows.norms, overlap_limit=overlap)


def _is_hollow(fit: Fit) -> bool:
    """Say whether members avoid the subspace itself.

    If their density falls with the distance, at least 2^-c of those within the median distance are
    within half of it.
    """
    groups, c = fit.groups, fit.V.shape[1]
    N = np.cumsum(groups.counts * groups.posterior)
    median = groups.edges[np.searchsorted(N, N[-1] / 2)]
    seen = N[np.searchsorted(groups.edges, median / 2)]
    expected = float(N[-1]) / 2 ** (c + 1)
    return bool(expected - seen > HOLLOW * np.sqrt(expected))


def by_all_rows(rows: RowSource, found: Found, callback: Callback | None = None) -> Found | None:
    """Confirm the decision of a sample by all rows; None where these leave its span."""
    assert found.decision is not None
    turned, span = in_their_span(rows)
    decision, before = found.decision, found.span
    if span.rank != before.rank:
        return None
    V = before.in_data(
        before.basis @ decision.axes.A if len(before.basis) > before.rank else decision.axes.A
    )
    A = span.inside(V)
    A = A if len(A) == span.rank else span.basis.T @ A
    decision = decision._replace(axes=decision.axes._replace(A=A))
    again = answer_of(turned, span, decision, found, n_distinct=found.n_distinct, callback=callback)
    factor = rows.shape[0] / found.n_distinct
    return again._replace(structures=structures_in(decision, rows.unit, factor, span.n_outside))


def _finished(
    rows: RowSource, span: RowSpan, V: Array, decision: Decision, callback: Callback | None
) -> Fit:
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    c, basis = V.shape[1], span.basis

    def axes_of(moments: Array) -> tuple[Array, Array]:
        whole = len(basis) == span.rank
        spectrum, axes = np.linalg.eigh(moments if whole else basis.T @ moments @ basis)
        return np.maximum(spectrum, 0.0), axes if whole else basis @ axes

    def turn(V: Array, moments: Array) -> tuple[Array, float]:
        _, axes = axes_of(moments)
        return axes[:, :c], turned_to(V, axes) * float(rows.norms[-1])

    found = confirm(rows, V, decision, edges=edges, unit=1.0, turn=turn, callback=callback)
    spectrum, axes = axes_of(found.moments)
    return Fit(found.V, found.groups, spectrum, axes, found.n_steps, converged=True)


def decision_evidence(
    decision: Decision, spectrum: Array, groups: TwoGroups, dtype: object
) -> dict[str, object]:
    """Return the numbers behind a decision, by name."""
    gap = largest_gap(spectrum, dtype, decision.n_members)
    facts = decision.facts
    return {
        "inlier_spectrum": spectrum,
        "inlier_gap": gap.ratio,
        "inlier_gap_runner_up": gap.runner_up,
        "inlier_share": groups.share,
        "rows_on_subspace": round(decision.n_members),
        "rows_on_any_subspace": facts.n_free,
        "gain": decision.contrast + decision.needed,
        "gain_needed": decision.needed,
        "plateau_length": facts.length,
        "plateau_clearness": facts.clearness,
        "ellipse_evidence": facts.ellipse,
        "ellipse_gap": facts.gap,
    }


def structures_in(
    decision: Decision, unit: float, rows_for_each: float, n_outside: int = 0
) -> tuple[dict[str, object], ...]:
    """Return what was seen as plain numbers, in the units of the data and for all rows.

    `n_outside` normals are those of the rows' span.
    """
    return tuple(
        {
            "codimension": one.codimension + n_outside,
            "noise": one.noise * unit,
            "members": round(one.members * rows_for_each),
            "score": one.score,
            "length": one.length,
            "chosen": one.chosen,
        }
        for one in decision.structures
    )
