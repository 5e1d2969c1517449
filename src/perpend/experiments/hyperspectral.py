"""The paper's table and six pictures: corrupted pixels of a hyperspectral scene.

Ten random bands of a 100 x 100 segment; 80 or 90 % of the pixels are replaced by random directions.
The pixels' spectra lie near a subspace of perhaps 3 to 5 dimensions. Beside the paper's case, where
c' = 10 is all of R^10, stands a fair one with 30 bands.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments import _scene
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._trials import dpcp_psgm, fitted, shares, starts_rng
from perpend.metrics import outlier_f1

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator

RATIOS = (0.8, 0.9)
PICTURE = {"ratio": 0.9, "draw": 0}  # of the narrow part


class Part(NamedTuple):
    """How many bands, starts and given normals."""

    bands: int
    starts: int  # c': of DPCP-PSGM, and given to the others as an overestimate
    given: int  # the codimension for the others, d = 5
    most: int | None = None  # a clear overestimate where c' is none


PAPER, FAIR = Part(10, 10, 5), Part(30, 15, 25, 28)

SHOWN = ("DPCP-PSGM, c' = 10", "RSGM, c' = 10", "RSGM, c = 5", "DPCP-IRLS, c = 5")


def models(part: Part, draw: int) -> dict[str, "SubspaceEstimator"]:
    """Return the compared methods by name; those with an unknown codimension come first."""
    from perpend import DPCP, DPCPIRLS, RSGM

    k = part.starts
    found: dict[str, SubspaceEstimator] = {
        f"DPCP-PSGM, c' = {k}": dpcp_psgm(k, draw),
        f"DPCP(n_starts={k})": DPCP(n_starts=k, random_state=starts_rng(draw)),
        "DPCP()": DPCP(random_state=starts_rng(draw)),
    }
    for codimension, name in {k: "c'", part.most: "c'", part.given: "c"}.items():
        if codimension is not None:
            found[f"RSGM, {name} = {codimension}"] = RSGM(codimension)
            found[f"DPCP-IRLS, {name} = {codimension}"] = DPCPIRLS(codimension)
    return found


def cases(settings: Settings) -> list[Case]:
    """Return one case for each draw of bands and ratio; the fair part needs enough bands."""
    path = _scene.scene_path(settings.scene, quick=settings.quick)
    side = _scene.QUICK_SIDE if settings.quick else _scene.SIDE
    n_bands, checksum = _scene.check_scene(path, settings.variable, PAPER.bands, side)
    draws = settings.seeds or (2 if settings.quick else 20)
    place = _scene.SYNTHETIC if str(path) == _scene.SYNTHETIC else str(path.resolve())
    scene = {"path": place, "variable": settings.variable, "checksum": checksum, "side": side}
    return [
        {"part": name, **scene, "ratio": ratio, "draw": draw}
        for draw in range(draws)
        for name, part in {"paper": PAPER, "fair": FAIR}.items()
        for ratio in RATIOS
        if n_bands >= part.bands
    ]


def run(case: Case) -> Tables:
    """Fit all methods to one corrupted scene."""
    part = PAPER if case["part"] == "paper" else FAIR
    segment = _scene.load_segment(case["path"], case["variable"], case["side"])
    data = _scene.corrupted(segment, part.bands, case["ratio"], case["draw"])
    scene = {"scene": Path(case["path"]).name, "bands": part.bands}
    given = {**scene, "ratio": case["ratio"], "draw": case["draw"]}
    scores, masks = [], {}
    for name, model in models(part, case["draw"]).items():
        model, seconds = fitted(model, data.X)  # noqa: PLW2901
        scores.append({**given, "method": name, **_scores(model, data), "seconds": seconds})
        masks[name] = model.labels_
    tables: Tables = {"scores": scores}
    if part is PAPER and {name: case[name] for name in PICTURE} == PICTURE:
        tables["pixels"] = _pixels(segment, data, masks)
    return tables


def _scores(model: "SubspaceEstimator", data: _scene.Corrupted) -> Row:
    """Return F1 of both classes, from the labels and from the best threshold."""
    distance = -model.score_samples(data.X)
    return {
        "codimension": int(model.codimension_),
        "confidence": float(model.confidence_),
        "f1_outliers": outlier_f1(data.y, model.labels_),
        "f1_inliers": outlier_f1(data.y, model.labels_, positive=1),
        "best_outliers": best_f1(data.y == -1, -distance),
        "best_inliers": best_f1(data.y == 1, distance),
    }


def best_f1(positive: Array, score: Array) -> float:
    """Return the largest F1 of "positive up to a score", over all scores.

    Scores that are equal up to rounding count as equal.
    """
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(positive, -np.round(score, 10))
    return float(np.max(2 * precision * recall / np.maximum(precision + recall, 1e-300)))


def _pixels(segment: Array, data: _scene.Corrupted, masks: dict[str, Array]) -> list[Row]:
    """Return the pictures, line by line: colours as hexadecimal numbers, labels as 0 and 1."""
    lines = {"scene": [line.tobytes().hex() for line in _scene.false_colours(segment)]}
    for name, labels in {"truth": data.y, **{name: masks[name] for name in SHOWN}}.items():
        image = (labels == -1).astype(int).reshape(segment.shape[:2])
        lines[name] = ["".join(map(str, line)) for line in image]
    return [
        {"panel": name, "line": i, "pixels": pixels}
        for name, image in lines.items()
        for i, pixels in enumerate(image)
    ]


def cost(case: Case) -> float:
    """Return the relative time."""
    return 1.0 if case["part"] == "paper" else 4.0


# -- results ---------------------------------------------------------------------------------------

RED, MISSED, FALSE_ALARM = (0.70, 0.17, 0.15), (0.0, 0.85, 1.0), (1.0, 0.85, 0.0)


def summary(results: Results) -> list[dict[str, str]]:
    """Return the mean F1 of every method, outliers being the positive class."""
    by = ("scene", "bands", "method")
    return shares(results, "scores", by, "ratio", F1=lambda row: row["f1_outliers"])


def draw(results: Results) -> dict[str, Any]:
    """Draw the paper's six panels, mistakes in colours of their own."""
    from perpend import plots

    def mask(name: str) -> Array:
        lines = results.column("pixels", "pixels", panel=name)
        return np.array([[pixel == "1" for pixel in line] for line in lines])

    def painted(mask: Array) -> Array:
        picture = np.where(mask[:, :, None], RED, scene)
        picture = np.where((~mask & truth)[:, :, None], MISSED, picture)
        return np.where((mask & ~truth)[:, :, None], FALSE_ALARM, picture)

    lines = results.column("pixels", "pixels", panel="scene")
    scene = np.array([list(bytes.fromhex(line)) for line in lines]) / 255
    scene = scene.reshape(len(scene), -1, 3)
    truth = mask("truth")
    size = f"{truth.shape[0]} × {truth.shape[1]} pixels"
    panels = {
        f"(a) the scene\n{size}": scene,
        f"(b) outliers put in\n{int(truth.sum())} pixels": painted(truth),
    }
    for letter, name in zip("cdef", SHOWN, strict=True):
        found = mask(name)
        panels[f"({letter}) {name}\n{int(np.sum(found != truth))} pixels wrong"] = painted(found)
    legend = {
        "labelled an outlier": RED,
        "outlier, missed": MISSED,
        "scene, labelled an outlier": FALSE_ALARM,
    }
    return {"scene": plots.images(panels, columns=3, legend=legend)}


EXPERIMENT = Experiment(
    name="hyperspectral",
    title="Corrupted pixels of a hyperspectral scene (Appendix B.1)",
    about="F1 on a scene of which 80 or 90 % of the pixels are replaced; --scene FILE",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)
