"""Rows that arrive in batches: what `partial_fit` keeps, when it decides again, and drift.

Two things are kept (record 28). Some rows: a uniform sample of all that came, and the latest ones;
on them the engine decides which subspace there is, each time that the rows have doubled. And the
members' second moments over *all* rows (`perpend.structure.drift`), whose axes are the subspace.
The moments are summed over the last block, the last two, four, ... (a binary counter), and each
such window is compared with everything before it when it is complete. Where they differ, the drift
is reported, and everything begins anew with the rows of that window.
"""

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from perpend._learned import frame, with_attributes
from perpend._score import log_evidence
from perpend._typing import Array
from perpend._validation import checked, checked_weight
from perpend._verdict import drift
from perpend.exceptions import DriftWarning, InputError, of_earlier_version
from perpend.geometry import as_generator, principal_angles
from perpend.rows.kinds import Place, computing_on, is_dask, is_lazy, is_tensor, to_numpy
from perpend.rows.plan import SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE
from perpend.structure import SURE, sample_size
from perpend.structure import constants as k
from perpend.structure.drift import (
    ENOUGH_PER_DIMENSION,
    Frame,
    Moments,
    chance_of_turn,
    errors_of,
    fewer,
    flattest,
    measure,
    of_fit,
    placed,
    raised,
    subspace_of,
)
from perpend.structure.labels import labels

CHANCE = 1e-7  # of each test, without any drift; there are three for each block in the mean
BLOCK, LEAST_BLOCK = 4, 64  # times the features, at least so many rows: enough for a test
MOVED = 2.0  # times the members' squared heights: below, subspaces differ by less than the noise
MOST_REPORTS = 1000  # that are kept: memory is bounded
# What stays that of the moments, where the engine has confirmed the subspace.
OF_MOMENTS = {
    *("components_", "normals_", "n_components_", "codimension_", "location_", "intercept_"),
    *("affine_", "_n_features_out", "_normals_error"),
}


@dataclass
class Stream:
    """All that is kept between batches."""

    seed: int
    size: int  # of the sample, and of the latest rows
    n_batches: int = 0
    n_rows: int = 0  # of positive weight, in all
    n_since: int = 0  # since the last drift
    n_decided: int = 0  # of those, when the engine decided last
    suspected: int = -1  # number of the row since which something may have changed
    check_at: int = 0  # number of the row at which that is checked again
    least_share: float = 1.0  # of members, at which the subspace was confirmed
    least_spread: float = 1.0  # along the subspace, in units of the earlier one, the same
    scatter: tuple[float, int] = (0.0, 0)  # of blocks about earlier rows: sum, number
    X: Array = None  # the rows that are kept,
    weight: Array = None
    number: Array = None  # the position of each in the stream,
    key: Array = None  # and a random number: the smallest ones are the sample
    frame: Frame | None = None
    windows: list[Moments] = field(default_factory=list)  # earliest first
    n_measured: int = 0  # of the rows: later ones wait until they are enough for a block
    counts: Array = None  # of all distances
    before: Array = None  # (c, D) normals before the last drift, until it is clear where it led to

    @classmethod
    def of(cls, model: Any, X: Array, weight: Array) -> "Stream":
        """Return a model's stream: the one it has, one that continues its fit, or a new one."""
        if (state := getattr(model, "_stream", None)) is not None:
            return cls.from_state(**state)
        seed, D = model.random_state, X.shape[1]
        if not isinstance(seed, int | np.integer):
            seed = as_generator(seed).integers(2**62)
        own = cls(int(seed), rows_to_keep(model, D))
        own.X, own.weight, own.key = np.zeros((0, D), np.float32), np.zeros(0), np.zeros(0)
        own.number = np.zeros(0, np.int64)
        if hasattr(model, "labels_"):
            own._continue(model, X, weight)
        return own

    @classmethod
    def from_state(cls, **values: Any) -> "Stream":
        """Undo `state`."""
        known, windows = values["frame"], [Moments(**one) for one in values["windows"]]
        known = None if known is None else Frame(**known)
        return cls(**values | {"frame": known, "windows": windows})

    def _continue(self, model: Any, X: Array, weight: Array) -> None:
        """Begin with what a fit has learned."""
        if not (hasattr(model, "_outlier_odds") and hasattr(model, "_distance_record")):
            raise of_earlier_version("only the subspace")
        self.n_rows = getattr(model, "n_samples_seen_", len(model.labels_))
        self.n_since = self.n_decided = self.n_measured = self.n_rows
        self.n_batches = getattr(model, "n_batches_", 0)
        known = Frame.of(model)
        moments = None if known is None else of_fit(model, known, measure(known, X, weight, 0)[0])
        if known is not None and moments is not None:
            self.frame, self.windows = known, [moments]
            self.counts = np.array(model._distance_record["counts"])

    def state(self) -> dict[str, Any]:
        """Return it as plain values, for files."""
        known = None if self.frame is None else self.frame._asdict()
        return vars(self) | {"frame": known, "windows": [one._asdict() for one in self.windows]}

    def is_sound(self, D: int) -> bool:
        """Say whether it fits a model of D features; a file might hold anything."""
        n, at, rows = len(self.X), self.frame, (self.weight, self.number, self.key)
        numbers = [self.seed, self.size - 2, self.n_batches, self.n_rows, self.n_measured]
        numbers += [self.n_since, self.n_decided, self.suspected + 1, self.check_at]
        fits = all(type(one) is int and one >= 0 for one in numbers)
        fits &= self.X.shape == (n, D) and all(one.shape == (n,) for one in rows)
        fits &= all(bool(np.all(np.isfinite(one))) for one in (self.X, *rows))
        fits &= bool(np.all(self.weight > 0) and np.all(np.diff(self.number) > 0))
        if not fits or at is None:
            return bool(fits) and not self.windows
        size, m = D + at.is_affine, len(at.edges)
        frames = [(at.normals, D), (at.components, D), (at.origin, D), (at.edges, m)]
        frames += [(at.weights, m), (self.counts, m), (at.offset, at.normals.shape[1])]
        fits = at.normals.shape[1] + at.components.shape[1] == D and len(self.windows) > 0
        grams = [A for one in self.windows for A in (one.gram, one.scores)]
        fits &= all(A.shape == (size, size) for A in grams) and all(len(A) == k for A, k in frames)
        return bool(fits and all(np.all(np.isfinite(A)) for A in (*grams, *(A for A, _ in frames))))

    # -- rows --------------------------------------------------------------------------------------

    def keep(self, X: Array, weight: Array) -> None:
        """Add rows, and drop those that are neither in the sample nor among the latest."""
        n, last = len(X), self.n_rows
        key = np.random.default_rng([self.seed, last]).random(n)
        added = (X, weight, np.arange(last, last + n), key)
        X = added[0] if last == 0 or not len(self.X) else np.concatenate([self.X, X])
        weight, number, key = (
            np.concatenate([old, new])
            for old, new in zip((self.weight, self.number, self.key), added[1:], strict=True)
        )
        self.n_rows, self.n_since = last + n, self.n_since + n
        self.X, self.weight, self.number, self.key = X, weight, number, key
        if len(key) > self.size:
            self._retain((number >= min(self.n_rows - self.size, self.n_measured)) | self.sampled)

    @property
    def sampled(self) -> Array:
        """Which of the rows are the uniform sample."""
        if len(self.key) <= self.size:
            return np.ones(len(self.key), dtype=bool)
        return self.key <= np.partition(self.key, self.size - 1)[self.size - 1]

    @property
    def is_complete(self) -> bool:
        """Whether all rows since the last drift are kept."""
        return len(self.X) == self.n_since

    def _retain(self, which: Array) -> None:
        self.X, self.weight = self.X[which], self.weight[which]
        self.number, self.key = self.number[which], self.key[which]

    # -- batches -----------------------------------------------------------------------------------

    def take(self, model: Any, X: Array, weight: Array) -> None:
        """Take a batch, or a part of one that is not larger than the sample."""
        self.keep(X, weight)
        if self.frame is None:
            self.n_measured = self.n_rows
        elif self.n_rows - self.n_measured >= max(BLOCK * X.shape[1], LEAST_BLOCK):
            self._close(model)
        if self.suspected >= 0 and self.n_rows >= self.check_at:
            self._check(model)
        settled = self.frame is not None and model.confidence_ >= SURE
        more = self.n_decided if settled else min(self.n_decided, self.size)
        if self.n_since >= self.n_decided + more and self.n_since > self.n_decided:
            self._decide(model)

    def _close(self, model: Any) -> None:
        """Compare a new block, and the windows that it completes, with all before; add it."""
        assert self.frame is not None
        new = self.number >= self.n_measured
        window, counts = measure(self.frame, self.X[new], self.weight[new], self.n_measured)
        self.counts, self.n_measured = self.counts + counts, self.n_rows
        sure = model.confidence_ >= SURE and window.weight > 0  # zero rows have none
        while self.windows:
            old = _total(self.windows)
            if sure and old.members > 0:
                chance = self._chance_of_turn(window, old)
                if chance <= CHANCE:
                    self._restart(model, window.first, "turn", chance)
                    return
                if window.blocks == 1:
                    self._suspect(window, old)
            if self.windows[-1].blocks != window.blocks:
                break
            window = self.windows.pop().plus(window)
        self.windows.append(window)
        self.frame = subspace_of(_total(self.windows), self.frame)

    def _chance_of_turn(self, new: Moments, old: Moments) -> float:
        """Return the chance of such scores, in units of how blocks have scattered so far."""
        assert self.frame is not None
        if self.frame.is_exact or new.members <= 0 or old.n_members < 2 * self.frame.n_along:
            return 1.0  # exact members that turn are none any more; few know nothing of the noise
        total, n = self.scatter
        chance, scatter = chance_of_turn(new, old, self.frame, max(1.0, total / max(n, 1)))
        if new.blocks == 1 and chance > CHANCE:
            self.scatter = (total + scatter, n + 1)
        return chance

    def _suspect(self, new: Moments, old: Moments) -> None:
        """Ask for a check, if members are missing or have become flatter."""
        flatter = self._spread(new, old) < self.least_spread / k.GAP**2
        if self.suspected < 0 and (flatter or fewer(new, old, self.least_share) <= CHANCE):
            self.suspected = self.check_at = new.first

    def _spread(self, new: Moments, old: Moments) -> float:
        """Return the smallest variance along the subspace; as before where it might be chance."""
        assert self.frame is not None
        few = new.n_members < ENOUGH_PER_DIMENSION * self.frame.components.shape[1]
        return 1.0 if few else flattest(new, old, self.frame)

    # -- decisions ---------------------------------------------------------------------------------

    def _found(self, model: Any, which: Array) -> Any:
        """Fit some of the rows that are kept; a single row is taken twice."""
        X, weight = self.X[which], self.weight[which]
        if len(X) == 1:
            X, weight = np.repeat(X, 2, axis=0), np.repeat(weight, 2)
        parameters = model.get_params(deep=False) | {"random_state": self.seed}
        found = type(model)(**parameters)
        with computing_on(X, found.device) as place:
            parts = (X, None if np.all(weight == 1) else weight, None, place, found.callback)
            # The solution is for warnings, if it is taken over.
            found._solution = found._fit(*parts, init=None, checkpoint=None)
        return found

    def _is_present(self, found: Any, model: Any) -> bool:
        """Say whether the subspace that was found is the present one."""
        assert self.frame is not None
        same = (found.codimension_, found.affine_) == (model.codimension_, model.affine_)
        return same and raised(_total(self.windows), self.frame, found) <= MOVED

    def _decide(self, model: Any) -> None:
        """Let the engine decide which subspace there is."""
        latest = self.frame is None and self.n_since > self.size
        which = self.number >= self.n_rows - self.size if latest else self.sampled
        found, self.n_decided = self._found(model, which), self.n_since
        self._complete_report(model, found)
        if self.frame is None or self.is_complete:
            self._adopt(model, found)
        elif self._is_present(found, model):
            _learn(model, found, OF_MOMENTS)
        elif found.confidence_ >= SURE:
            self._report(model, found, int(self.number[0]), "revised", math.nan)
            self._adopt(model, found)
        elif model.confidence_ >= SURE:  # a sure one is replaced by a sure one only
            _learn(model, found, vars(found).keys() - {"confidence_", "doubts_", "evidence_"})
        else:
            self._adopt(model, found)

    def _adopt(self, model: Any, found: Any) -> None:
        """Go on with what was found, and with the moments of the rows that are kept."""
        _learn(model, found)
        self.frame, self.windows, self.counts = Frame.of(found), [], None
        self.n_measured = self.n_rows
        if self.frame is not None:
            known = measure(self.frame, self.X, self.weight, int(self.number[0]))
            self.windows, self.counts = [placed(known[0], self.frame)], known[1]

    def _check(self, model: Any) -> None:
        """Look for the subspace in the rows since something may have changed.

        If the search is sure of another one that explains these rows better, or if they speak
        against the present one, it is gone. If the search is not sure, it is for more rows to say.
        """
        start = max(self.suspected, self.n_rows - self.size)
        which = self.number >= start
        X, weight, found = self.X[which], self.weight[which], self._found(model, which)
        self.refresh(model)
        reference = found._reference or model._reference  # one for both
        here = with_attributes(model, {"_reference": reference})
        own, new = (np.average(log_evidence(one, X), weights=weight) for one in (here, found))
        seen = any(self._is_present(found.choose(i), model) for i in range(len(found.structures_)))
        sure, all_kept = found.confidence_ >= SURE, self.n_rows - self.suspected >= self.size
        if own <= 0 or (sure and new > own and not seen):
            self._restart(model, start, "other" if sure else "lost", math.nan, found)
        elif sure or all_kept:
            assert self.frame is not None
            moments, _ = measure(self.frame, X, weight, start)
            self.suspected, self.least_share = -1, min(self.least_share, moments.share)
            spread = self._spread(moments, _total(self.windows))
            self.least_spread = min(self.least_spread, spread)
        else:
            self.check_at = self.n_rows + len(X)

    def _restart(
        self, model: Any, start: int, reason: str, chance: float, found: Any = None
    ) -> None:
        """Report a drift, and go on with the rows since then."""
        start = max(start, self.n_rows - self.size)
        self._retain(self.number >= start)
        found = self._found(model, self.sampled) if found is None else found
        self._report(model, found, start, reason, chance)
        self.n_since = self.n_decided = len(self.X)
        self.suspected, self.least_share, self.least_spread = -1, 1.0, 1.0
        self.scatter = (0.0, 0)
        self._adopt(model, found)

    def _report(self, model: Any, found: Any, start: int, reason: str, chance: float) -> None:
        """Note a drift. What it has led to is noted as soon as the rows are sure of it."""
        report = {"batch": self.n_batches, "row": start, "reason": reason, "chance": chance}
        report |= {"angle": math.nan, "codimension": model.codimension_, "codimension_now": None}
        model.drifts_ = [*model.drifts_, report][-MOST_REPORTS:]
        self.before = to_numpy(model.normals_).astype(float)
        self._complete_report(model, found)

    def _complete_report(self, model: Any, found: Any) -> None:
        if self.before is None or found.confidence_ < SURE:
            return
        angles = principal_angles(self.before.T, to_numpy(found.normals_).astype(float).T)
        angle = float(np.degrees(np.max(angles, initial=0.0)))
        last = {**model.drifts_[-1], "angle": angle, "codimension_now": found.codimension_}
        model.drifts_, self.before = [*model.drifts_[:-1], last], None

    def refresh(self, model: Any) -> None:
        """Bring the attributes of the subspace up to date."""
        at = self.frame
        if at is None:
            return
        moments, location, record = _total(self.windows), None, model._distance_record
        if at.is_affine:
            along = at.components.T @ (moments.gram[:-1, -1] / moments.gram[-1, -1])
            location = at.origin - at.normals @ at.offset + at.components @ along
        parts = (at.components, at.normals, location, self.X.dtype, Place(self.X, None))
        table = frame(*parts) | {"_normals_error": errors_of(moments, at)._asdict()}
        if record is not None and np.array_equal(record["edges"], at.edges):
            total = float(self.counts.sum())
            rest = {"n_inliers": moments.share * total, "n_outliers": (1 - moments.share) * total}
            table["_distance_record"] = {**record, "counts": self.counts, **rest}
        model.__dict__.update(table)


def rows_to_keep(model: Any, D: int) -> int:
    """Return how many rows the engine needs, to decide about linear or affine subspaces."""
    if isinstance(size := getattr(model, "sample_size", "auto"), int):
        return size
    return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE * D, sample_size(D) if model.affine else 0)


def _total(windows: list[Moments]) -> Moments:
    total = windows[0]
    for one in windows[1:]:
        total = total.plus(one)
    return total


def _learn(model: Any, found: Any, but: set[str] | frozenset[str] = frozenset()) -> None:
    """Take over what another model has learned; the columns stay the model's own."""
    solution = vars(found).pop("_solution")
    given = {*model.get_params(deep=False), "n_features_in_", "feature_names_in_", *but}
    model.__dict__.update({name: v for name, v in vars(found).items() if name not in given})
    model._warn(solution)


def _labels(model: Any, X: Array) -> Array:
    return labels(-model._scores(X)[0], model.threshold_)


# -- the estimator's part --------------------------------------------------------------------------


def partial_fit(model: Any, X: Any, sample_weight: Any) -> None:
    """Add a batch to what a model has learned."""
    _refuse(model, X)
    place, new = Place(X, None), not hasattr(model, "n_features_in_")
    if np.shape(X)[:1] == (0,) and np.ndim(X) == 2:
        if not new and np.shape(X)[1] != model.n_features_in_:
            raise InputError(
                f"X has {np.shape(X)[1]} features, but {type(model).__name__} is expecting "
                f"{model.n_features_in_} features as input."
            )
        return
    X = checked(model, X, place, reset=new, least=1)
    weight = checked_weight(sample_weight, X, place)
    weight = np.ones(len(X)) if weight is None else weight.astype(float)
    stream = Stream.of(model, X, weight)
    model.drifts_, stream.n_batches = getattr(model, "drifts_", []), stream.n_batches + 1
    # Zero rows say nothing about a linear subspace, and alone they can't be fitted.
    some = np.flatnonzero((weight > 0) & (np.any(X != 0, axis=1) | (model.affine is True)))
    for part in gen_batches(len(some), stream.size):
        stream.take(model, X[some[part]], weight[some[part]])
    stream.refresh(model)
    model._stream = stream.state()
    model.n_batches_, model.n_samples_seen_ = stream.n_batches, stream.n_rows
    if hasattr(model, "normals_"):
        model.labels_ = _labels(model, X)
        model._others = [
            one and {**one, "labels_": _labels(with_attributes(model, one), X) == 1}
            for one in getattr(model, "_others", [])  # files of earlier versions have none
        ]
    for report in (one for one in model.drifts_ if one["batch"] == stream.n_batches):
        text = (
            f"{drift(report)}. The fit goes on with the rows since then, and forgets earlier ones."
        )
        warnings.warn(text[0].upper() + text[1:], DriftWarning, stacklevel=3)


def _refuse(model: Any, X: Any) -> None:
    """Say what partial_fit can't do."""
    what = None
    if is_dask(X):
        what = "rows in memory, batch after batch; pass X.blocks[i].compute(), or use fit(X)"
    elif sparse.issparse(X):
        what = "dense rows, batch after batch; pass X.toarray(), or use fit(X)"
    elif is_lazy(X):
        what = (
            "rows in memory, batch after batch; pass X[start:stop], for example for each slice in "
            "X.windows, or use fit(X)"
        )
    elif is_tensor(X):
        what = "NumPy arrays, or what can be made one; pass X.cpu().numpy()"
    elif model.missing != "error":
        what = 'missing="error", and complete rows'
    elif getattr(model, "refine", "auto") is False:
        what = 'refine="auto": it keeps the subspace up to date by the members\' second moments'
    if what is not None:
        raise InputError(f"partial_fit needs {what}.")
