"""Fits of every kind, small and made once: what the page must be able to show."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.formats._dataset import Counts, Dataset


class Case(NamedTuple):
    """A fitted model and its rows."""

    model: DPCP
    data: Any


def fitted(X: Any, **parameters: Any) -> DPCP:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are not sure, and warn
        return DPCP(random_state=1000, **parameters).fit(X)


def dataset(X: np.ndarray, kind: Any = "table", **more: Any) -> Dataset:
    fields = {"shape": (len(X),), "source": "data.csv", "format": "csv", **more}
    return Dataset(X=X, kind=kind, **fields)


@cache
def table() -> Case:
    """Noise, named columns, one row of the file left out, and one inlier with a wrong value."""
    X = make_subspace(200, 150, n_features=8, codimension=3, noise=0.02, random_state=0).X
    X[7] = 3 * X[np.argmin(np.abs(fitted(X).score_samples(X)))]
    X[7, 5] += 2.0
    positions = np.delete(np.arange(len(X) + 1), 3)
    data = dataset(X, shape=(len(X) + 1,), positions=positions, columns=tuple("abcdefgh"))
    return Case(fitted(X), data)


@cache
def hopeless() -> Case:
    X = np.random.default_rng(0).standard_normal((60, 6))
    return Case(fitted(X), X)


@cache
def unsure() -> Case:
    X = make_subspace(40, 60, n_features=8, codimension=2, noise=0.3, random_state=3).X
    return Case(fitted(X, codimension="auto"), X)


@cache
def cloud() -> Case:
    drawn = make_subspace(
        300,
        200,
        n_features=3,
        codimension=1,
        noise=0.02,
        offset=4.0,
        move_outliers=True,
        random_state=0,
    )
    X = 10 * drawn.X
    data = dataset(X, "cloud", columns=("x", "y", "z"), source="scan.ply", format="ply")
    return Case(fitted(X, affine=True), data)


@cache
def image() -> Case:
    """A scene of 12 x 15 pixels in 6 bands with a 2 x 3 anomaly and a corner without data."""
    rng = np.random.default_rng(0)
    X = rng.random((12 * 15, 2)) @ rng.random((2, 6)) + 0.001 * rng.standard_normal((180, 6))
    scene = X.reshape(12, 15, 6)
    scene[4:6, 7:10] += rng.standard_normal((2, 3, 6))
    positions = np.arange(4, 180)
    data = dataset(
        X[positions],
        "image",
        shape=(12, 15),
        positions=positions,
        columns=tuple(f"{400 + 50 * k} nm" for k in range(6)),
        source="scene.hdr",
        format="envi",
        counts=Counts(ignored=4),
    )
    return Case(fitted(data.X, codimension=4), data)


@cache
def given() -> Case:
    X = make_subspace(150, 100, n_features=6, codimension=2, random_state=0).X
    return Case(fitted(X, codimension=2), X)


@cache
def given_zero() -> Case:
    X = make_subspace(50, 50, n_features=4, codimension=1, random_state=0).X
    return Case(fitted(X, codimension=0), X)


@cache
def point() -> Case:
    X = np.random.default_rng(0).standard_normal((30, 3))
    return Case(fitted(X, codimension=3), X)


@cache
def clean() -> Case:
    X = make_subspace(120, 0, n_features=5, codimension=2, random_state=0).X
    return Case(fitted(X), X)


@cache
def flat() -> Case:
    """Two columns, lengths that matter, and a given threshold."""
    X = make_subspace(100, 60, n_features=2, codimension=1, noise=0.01, random_state=0).X
    return Case(fitted(X, normalize=False, threshold=0.1), X)


@cache
def street() -> Case:
    """A road inside a slab: several structures, and a profile."""
    rng = np.random.default_rng(0)
    X = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    X[:1200, 2] = rng.normal(0, 0.05, 1200)
    data = dataset(X, "cloud", columns=("x", "y", "z"), source="street.ply", format="ply")
    return Case(fitted(X, affine=True), data)


CASES = (table, hopeless, unsure, cloud, image, given, given_zero, point, clean, flat, street)
