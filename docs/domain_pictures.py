"""The pictures of the pages in docs/domains, as the code on those pages draws them.

Run ``python docs/domain_pictures.py`` to make them again. Each page is run in an empty folder, and
the PNG that it writes is copied to ``docs/_static/domains``. The cards of the start page show the
same data without words, as words would be too small to read. All data is synthetic.
"""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from perpend.plots import COLORS, figure

HERE = Path(__file__).resolve().parent
TARGET = HERE / "_static" / "domains"


def draw() -> None:
    """Run each page, and keep its picture."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from docs_code import run_page

    TARGET.mkdir(exist_ok=True)
    for page in sorted((HERE / "domains").glob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.chdir(folder):
                names = run_page(page)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, TARGET)
        if page.stem in CARDS:
            save_card(page.stem, names)
    save_card("research", {})


def save_card(name: str, names: dict[str, Any]) -> None:
    """Draw a card from what the code of a page has left."""
    with figure(1, 1, panel=(3.3, 2.1)) as (fig, axes):
        ax = axes.ravel()[0]
        CARDS[name](ax, names)
        ax.set_axis_off()
        fig.savefig(TARGET / f"card-{name}.png", dpi=160)


def table_card(ax: Any, names: dict[str, Any]) -> None:
    """Draw the distances of the rows, inliers and outliers."""
    model = names["model"]
    distance = np.log10(-model.score_samples(names["table"]))
    borders = np.linspace(-3.7, distance.max(), 45)
    for label, color in ((1, COLORS[0]), (-1, COLORS[1])):
        ax.hist(distance[model.labels_ == label], borders, color=color)
    ax.axvline(np.log10(model.threshold_), color="0.2", linestyle="--")


def scene_card(ax: Any, names: dict[str, Any]) -> None:
    """Draw the scene with its anomalies."""
    image = names["cube"][:, :, [9, 5, 1]]
    ax.imshow((image - image.min()) / np.ptp(image), aspect="auto")
    rows, columns = (place.reshape(-1, 4).mean(axis=1) for place in np.nonzero(names["mask"]))
    ax.plot(columns, rows, "o", color="white", markersize=17, markerfacecolor="none")


def scan_card(ax: Any, names: dict[str, Any]) -> None:
    """Draw the room from the side, slightly from above."""
    points, floor = names["points"] - names["model"].location_, names["model"].labels_ == 1
    across, up = points[:, 0] + 0.35 * points[:, 1], points[:, 2] + 0.12 * points[:, 1]
    for some, color in ((~floor, COLORS[1]), (floor, COLORS[0])):
        ax.plot(across[some], up[some], ".", color=color, markersize=3)


def homography_card(ax: Any, names: dict[str, Any]) -> None:
    """Draw the correct matches as short lines, and wrong ones."""
    a, b, right = names["a"], names["b"], names["right"]
    wrong = np.flatnonzero(~right)[:25]
    for some, color in ((wrong, COLORS[1]), (np.flatnonzero(right)[:120], COLORS[0])):
        ax.plot(*np.stack([a[some], b[some]]).transpose(2, 0, 1), color=color, linewidth=0.9)
        ax.plot(*b[some].T, ".", color=color, markersize=4)
    ax.set(xlim=(0, 640), ylim=(480, 0))


def research_card(ax: Any, names: dict[str, Any]) -> None:  # noqa: ARG001
    """Draw the objective over the directions of the plane: its minimum is the normal of a line."""
    rng = np.random.default_rng(0)
    angles = np.concatenate([np.full(40, 1.0), rng.uniform(0, np.pi, 60)])
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    at = np.linspace(0, 2 * np.pi, 721)
    height = np.abs(rows @ np.stack([np.cos(at), np.sin(at)])).sum(axis=0)
    ax.plot(at, height, color=COLORS[0], linewidth=2)
    least = np.flatnonzero((height < np.roll(height, 1)) & (height < np.roll(height, -1)))
    lowest = least[height[least] < height.min() + 1e-6]
    ax.plot(at[lowest], height[lowest], "o", color=COLORS[1], markersize=8)


CARDS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "table": table_card,
    "hyperspectral": scene_card,
    "point_cloud": scan_card,
    "homography": homography_card,
    "research": research_card,
}


if __name__ == "__main__":
    draw()
