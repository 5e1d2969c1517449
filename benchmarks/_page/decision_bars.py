"""What is asked of the decisions, judged from the stored counts and times."""

from collections.abc import Callable

from _page.section import Bar, Result, at_most, number
from perpend.experiments._text import percent

SLAB_RIGHT, SLAB_SURE_AND_WRONG = 0.9, 0.02
CLOUD_SURE, GAP_FOUND = 0.005, 0.98
STRETCHED_RIGHT, STRETCHED_SURE = 0.95, 0.8
SURE_RIGHT, RIGHT_SURE = 0.99, 0.8  # of the third suite
UNSURE_OVER_SURE = 5
MEAN_OFF, MOST_OFF = 0.01, 0.03  # AUC below that of the least-squares plane
HOMOGENEOUS_AUC, TABLE_AUC, SCANS_SURE = 0.985, 0.997, 0.9
ROAD_TIME, HOMOGENEOUS_TIME = 1 / 20, 1 / 40
LONGEST_TIME, CLEAR_TIME = 1 / 15, 1.2


def bars(result: Result) -> list[Bar]:
    """Return the bars of everything that is stored, in the order of the page."""
    judges = (
        (result["suites"], {"scans": _scans, "slab": _slab, "cloud": _cloud, "gap": _gap}),
        (result["suites"], {"stretched": _stretched, "third": _third}),
        (result["times"], {"scans": _scan_times, "third": _longest, "clear": _clear_times}),
    )
    return [
        bar
        for stored, judge_of in judges
        for name, judge in judge_of.items()
        if name in stored
        for bar in judge(stored[name])
    ]


def share(hits: int, n: int) -> float:
    """Return a share; that of nothing is no number, and holds no bar."""
    return hits / n if n else float("nan")


def fraction(ratio: float) -> str:
    """Write a ratio of times.

    >>> fraction(0.05), fraction(1.1)
    ('1/20', '1.10')
    """
    return f"1/{1 / ratio:.3g}" if 0 < ratio < 0.5 else number(ratio)


def time_limit(name: str, row: Result) -> float | None:
    """Return what is asked of the ratio of a row, None for nothing."""
    if name == "scans" and row["kind"] == "roads":
        return HOMOGENEOUS_TIME if row["form"] == "xyz1" else ROAD_TIME
    return {"third": LONGEST_TIME, "clear": CLEAR_TIME}.get(name)


def frame(row: Result) -> str:
    """Name a scan and its form."""
    form = "rows [x y z 1]" if row["form"] == "xyz1" else "points, affine"
    return f"{row['frame']}, {form}"


def _rate(what: str, asked: str, hits: int, n: int, held: Callable[[float], bool]) -> Bar:
    """Judge a share that is stored as counts."""
    value = share(hits, n)
    measured = f"{hits} of {n}, {percent(value)}" if n else "none of none"
    return Bar(what, asked, measured, held(value))


def _at_least(what: str, hits: int, n: int, limit: float) -> Bar:
    return _rate(what, f"at least {percent(limit)}", hits, n, lambda value: value >= limit)


def _at_most(what: str, hits: int, n: int, limit: float) -> Bar:
    return _rate(what, f"at most {percent(limit)}", hits, n, lambda value: value <= limit)


def _slab(stored: Result) -> list[Bar]:
    found = stored["all"]
    n = found["problems"]
    wrong = found["sure_and_wrong"]
    return [
        _at_least("plane in a slab: codimension and noise right", found["right"], n, SLAB_RIGHT),
        _at_most("plane in a slab: sure and wrong", wrong, n, SLAB_SURE_AND_WRONG),
    ]


def _cloud(stored: Result) -> list[Bar]:
    found = stored["all"]
    what = "smooth clouds: sure of a subspace"
    return [_at_most(what, found["sure_and_wrong"], found["problems"], CLOUD_SURE)]


def _gap(stored: Result) -> list[Bar]:
    found = stored["all"]
    what = "gap of 10 in a cloud: found and sure"
    return [_at_least(what, found["right_and_sure"], found["problems"], GAP_FOUND)]


def setting(row: Result) -> str:
    """Name a setting of the stretched inliers."""
    return (
        f"D = {row['D']}, c = {row['c']}, {percent(row['r'])} outliers, "
        f"stretch {row['stretch']:g}, noise {row['noise']:g}"
    )


def _stretched(stored: Result) -> list[Bar]:
    asked = f"{percent(STRETCHED_RIGHT)} right, {percent(STRETCHED_SURE)} of them sure"
    return [
        Bar(
            f"stretched inliers, {setting(row)}",
            asked,
            f"{row['right']} of {row['problems']}, {row['right_and_sure']} sure",
            share(row["right"], row["problems"]) >= STRETCHED_RIGHT
            and share(row["right_and_sure"], row["right"]) >= STRETCHED_SURE,
        )
        for row in next(iter(stored["by"].values()))
    ]


def _third(stored: Result) -> list[Bar]:
    found, seconds = stored["all"], stored["seconds"]
    both = found["right_and_sure"]
    both_times = [seconds[name] for name in ("unsure", "sure")]
    ratio = [both_times[0] / both_times[1]] if all(both_times) else []
    return [
        _at_least("third suite: sure answers that are right", both, found["sure"], SURE_RIGHT),
        _at_least("third suite: right answers that are sure", both, found["right"], RIGHT_SURE),
        at_most("third suite: median time unsure over sure", ratio, UNSURE_OVER_SURE),
    ]


def _scans(stored: Result) -> list[Bar]:
    made = []
    for row in next(iter(stored["by"].values())):
        if (row["kind"], row["form"]) == ("roads", "xyz"):
            made += _road(row)
            continue
        least = HOMOGENEOUS_AUC if row["kind"] == "roads" else TABLE_AUC
        smallest, asked = row["smallest_auc"], f"at least {least:g}"
        what = f"{frame(row)}: AUC in every seed"
        made.append(Bar(what, asked, f"{smallest:.4f}", smallest >= least))
        made.append(_at_least(f"{frame(row)}: sure", row["sure"], row["problems"], SCANS_SURE))
    return made


def _road(row: Result) -> list[Bar]:
    name, best = frame(row), row["best_auc"]
    off = [best - row[key] for key in ("auc", "smallest_auc")]
    wrong = row["sure_and_wrong"]
    return [
        Bar(
            f"{name}: AUC below that of the least-squares plane, {best:.4f}",
            f"at most {MEAN_OFF:g} in the mean, {MOST_OFF:g} in every seed",
            f"{off[0]:.4f}, {off[1]:.4f}",
            off[0] <= MEAN_OFF and off[1] <= MOST_OFF,
        ),
        Bar(f"{name}: sure and wrong", "none", f"{wrong} of {row['problems']}", wrong == 0),
    ]


def _time_bar(what: str, ratio: float, limit: float) -> Bar:
    return Bar(what, f"at most {fraction(limit)}", fraction(ratio), ratio <= limit)


def _scan_times(stored: Result) -> list[Bar]:
    return [
        _time_bar(f"{frame(row)}: CPU time over version 0.1", row["median_ratio"], limit)
        for row in stored["rows"]
        if (limit := time_limit("scans", row)) is not None
    ]


def _longest(stored: Result) -> list[Bar]:
    what = "third suite: longest fit over that of version 0.1"
    return [_time_bar(what, row["longest_ratio"], LONGEST_TIME) for row in stored["rows"]]


def _clear_times(stored: Result) -> list[Bar]:
    what = "clear fits, {}: CPU time over version 0.1"
    return [
        _time_bar(what.format(row["data"]), row["median_ratio"], CLEAR_TIME)
        for row in stored["rows"]
    ]
