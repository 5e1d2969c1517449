"""The targets of the decisions, checked by the stored counts and times."""

from _text import percent

from _page.section import Result, Target, at_most, number

SLAB_RIGHT, SLAB_SURE_AND_WRONG = 0.9, 0.02
STRETCHED_RIGHT, STRETCHED_SURE = 0.95, 0.8
SURE_RIGHT, RIGHT_SURE = 0.99, 0.8  # of the third suite
UNSURE_OVER_SURE = 5
MEAN_OFF, MOST_OFF = 0.01, 0.03  # AUC below that of the least-squares plane
HOMOGENEOUS_AUC, TABLE_AUC, SCANS_SURE = 0.985, 0.997, 0.9
ROAD_TIME, HOMOGENEOUS_TIME = 1 / 20, 1 / 40
LONGEST_TIME, CLEAR_TIME = 1 / 15, 1.2
LEAST, MOST = "at least", "at most"
RATES = {  # suite -> what is required of all its problems: counted, of how many, the limit
    "slab": [
        ("plane in a slab: codimension and noise right", "right", "problems", LEAST, SLAB_RIGHT),
        (
            "plane in a slab: sure and wrong",
            "sure_and_wrong",
            "problems",
            MOST,
            SLAB_SURE_AND_WRONG,
        ),
    ],
    "cloud": [("smooth clouds: a sure subspace", "sure_and_wrong", "problems", MOST, 0.005)],
    "gap": [("gap of 10 in a cloud: found and sure", "right_and_sure", "problems", LEAST, 0.98)],
    "stretched": [],
    "third": [
        ("third suite: sure estimates that are right", "right_and_sure", "sure", LEAST, SURE_RIGHT),
        (
            "third suite: right estimates that are sure",
            "right_and_sure",
            "right",
            LEAST,
            RIGHT_SURE,
        ),
    ],
}


def targets(result: Result) -> list[Target]:
    """Return the targets of everything that is stored, in the order of the page."""
    suites, times = result["suites"], result["times"]
    made = _scans(suites["scans"]) if "scans" in suites else []
    for name, rates in RATES.items():
        if name in suites:
            found = suites[name]["all"]
            made += [
                _rate(what, found[hits], found[n], side, limit)
                for what, hits, n, side, limit in rates
            ]
            made += {"stretched": _stretched, "third": _third}.get(name, lambda _: [])(suites[name])
    for name, stored in times.items():
        made += _times(name, stored["rows"])
    return made


def share(hits: int, n: int) -> float:
    """Return a share; that of nothing is no number, and meets no target."""
    return hits / n if n else float("nan")


def fraction(ratio: float) -> str:
    """Write a ratio of times.

    >>> fraction(0.05), fraction(1.1)
    ('1/20', '1.10')
    """
    return f"1/{1 / ratio:.3g}" if 0 < ratio < 0.5 else number(ratio)


def time_limit(name: str, row: Result) -> float | None:
    """Return what is required of the ratio of a row, None for nothing."""
    if name == "scans" and row["kind"] == "roads":
        return HOMOGENEOUS_TIME if row["form"] == "xyz1" else ROAD_TIME
    return {"third": LONGEST_TIME, "clear": CLEAR_TIME}.get(name)


def frame(row: Result) -> str:
    """Name a scan and its form."""
    form = "rows [x y z 1]" if row["form"] == "xyz1" else "points, affine"
    return f"{row['frame']}, {form}"


def _rate(what: str, hits: int, n: int, side: str, limit: float) -> Target:
    """Score a share that is stored as counts."""
    value = share(hits, n)
    measured = f"{hits} of {n}, {percent(value)}" if n else "none of none"
    met = value >= limit if side == LEAST else value <= limit
    return Target(what, f"{side} {percent(limit)}", measured, met)


def setting(row: Result) -> str:
    """Name a setting of the stretched inliers."""
    return (
        f"D = {row['D']}, c = {row['c']}, {percent(row['r'])} outliers, "
        f"stretch {row['stretch']:g}, noise {row['noise']:g}"
    )


def _stretched(stored: Result) -> list[Target]:
    required = f"{percent(STRETCHED_RIGHT)} right, {percent(STRETCHED_SURE)} of them sure"
    return [
        Target(
            f"stretched inliers, {setting(row)}",
            required,
            f"{row['right']} of {row['problems']}, {row['right_and_sure']} sure",
            share(row["right"], row["problems"]) >= STRETCHED_RIGHT
            and share(row["right_and_sure"], row["right"]) >= STRETCHED_SURE,
        )
        for row in next(iter(stored["by"].values()))
    ]


def _third(stored: Result) -> list[Target]:
    unsure, sure = (stored["seconds"][name] for name in ("unsure", "sure"))
    ratio = [unsure / sure] if unsure and sure else []
    return [at_most("third suite: median time unsure over sure", ratio, UNSURE_OVER_SURE)]


def _scans(stored: Result) -> list[Target]:
    made = []
    for row in next(iter(stored["by"].values())):
        if (row["kind"], row["form"]) == ("roads", "xyz"):
            made += _road(row)
            continue
        least = HOMOGENEOUS_AUC if row["kind"] == "roads" else TABLE_AUC
        smallest, required = row["smallest_auc"], f"at least {least:g}"
        what = f"{frame(row)}: AUC in every seed"
        made.append(Target(what, required, f"{smallest:.4f}", smallest >= least))
        what = f"{frame(row)}: sure"
        made.append(_rate(what, row["sure"], row["problems"], LEAST, SCANS_SURE))
    return made


def _road(row: Result) -> list[Target]:
    name, best = frame(row), row["best_auc"]
    off = [best - row[key] for key in ("auc", "smallest_auc")]
    wrong = row["sure_and_wrong"]
    return [
        Target(
            f"{name}: AUC below that of the least-squares plane, {best:.4f}",
            f"at most {MEAN_OFF:g} in the mean, {MOST_OFF:g} in every seed",
            f"{off[0]:.4f}, {off[1]:.4f}",
            off[0] <= MEAN_OFF and off[1] <= MOST_OFF,
        ),
        Target(f"{name}: sure and wrong", "none", f"{wrong} of {row['problems']}", wrong == 0),
    ]


def _times(name: str, rows: list[Result]) -> list[Target]:
    """Check the ratios of times that have a target."""
    word = "longest_ratio" if name == "third" else "median_ratio"
    made = []
    for row in rows:
        limit = time_limit(name, row)
        if limit is not None:
            what = {
                "scans": lambda row: f"{frame(row)}: CPU time over version 0.1",
                "third": lambda _: "third suite: longest fit over that of version 0.1",
                "clear": lambda row: f"clear fits, {row['data']}: CPU time over version 0.1",
            }[name](row)
            required = f"at most {fraction(limit)}"
            made.append(Target(what, required, fraction(row[word]), row[word] <= limit))
    return made
