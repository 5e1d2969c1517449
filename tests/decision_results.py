"""Results as benchmarks/decisions.py and benchmarks/constants.py store them."""

import json

COUNTS = {"problems": 100, "right": 100, "sure": 99, "right_and_sure": 99, "sure_and_wrong": 0}
MORE = {"right_by_deviation": 98, "right_codimension": 100, "outliers_own": 10, "out_of_reach": 3}
MORE |= {"sure_out_of_reach": 0, "labels_fit": 90, "labels_can_fit": 92}
COUNTS |= MORE
SECONDS = {"sure": 0.1, "unsure": 0.4, "longest": 2.0}
RUN = {"first_seed": 0, "draws": 100, "full": 100, "all": COUNTS, "seconds": SECONDS}
SETTING = "D, c, n_inliers, r, stretch, noise"
FRAMES = [("roads", "a", "xyz"), ("roads", "a", "xyz1"), ("tables", "b", "xyz")]


def by(*names_and_values):
    """Counts for every value of one setting."""
    return {
        ", ".join(names): [{**dict(zip(names, value, strict=True)), **COUNTS} for value in values]
        for names, values in names_and_values
    }


def frames(**more):
    names = ("kind", "frame", "form")
    return [{**dict(zip(names, frame, strict=True)), **more} for frame in FRAMES]


def timed(**more):
    times = {"now": 0.1, "before": 10.0}
    ratios = {"median": times, "median_ratio": 0.01, "longest": times, "longest_ratio": 0.01}
    return {"fits": 2, **ratios, **more}


def decisions():
    """Return results that hold every target."""
    shapes = [(30, 5, 500, 0.5, 0.1, 0.05), (10, 1, 300, 0.7, 1.0, 0.05)]
    scans = frames(**COUNTS, auc=0.998, smallest_auc=0.9975, best_auc=0.999)
    clouds = {**RUN, "by": by((("law",), [("Gauss",), ("box",)]), (("features",), [("2 to 5",)]))}
    found = {
        "suites": {
            "scans": {**RUN, "by": {"kind, frame, form": scans}},
            "slab": {
                **RUN,
                "by": by((("ratio", "share"), [(5, "15 to 30 %"), (10, "15 to 30 %")])),
            },
            "cloud": clouds,
            "gap": clouds,
            "stretched": {
                **RUN,
                "by": by((tuple(SETTING.split(", ")), shapes)),
            },
            "third": {
                **RUN,
                "by": by((("inliers",), [("cube",)]), (("noise",), [("none",), ("by row",)])),
            },
        },
        "times": {
            "scans": {**RUN, "rows": frames(**timed())},
            "third": {**RUN, "rows": [timed()]},
            "clear": {**RUN, "rows": [timed(data="50,000 × 200", median_ratio=1.1)]},
        },
    }
    return json.loads(json.dumps(found))  # no part is shared, so one can be changed alone


def constants():
    """Return a study in which one constant moves results, one does not, and one is not read."""
    still = {"moved": 0, "codimension": 0, "sureness": 0, "labels": 0}
    found = {"right": 9, "sure": 8, "sure_and_wrong": 0}
    moved = {"moved": 2, "codimension": 1, "sureness": 1, "labels": 0, **found}
    return {
        "first_seed": 0,
        "full": 10,
        "problems": {"slab": 5, "third": 5},
        "default": found,
        "other_starts": {**still, **found},
        "results": [
            {
                "name": name,
                "value": 1.0,
                "read_in": read,
                "changes": [{"to": 0.8, **still, **found}, {"to": 1.25, **change, **found}],
            }
            for name, read, change in (
                ("LENGTH", 9, moved),
                ("KINK", 5, still),
                ("OUTER", 0, still),
            )
        ],
    }


BAD = [
    ("decisions", "suites", "scans", "by", "kind, frame, form", 0, "auc", 0.988),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 0, "smallest_auc", 0.968),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 0, "sure_and_wrong", 1),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 1, "smallest_auc", 0.984),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 1, "sure", 89),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 2, "smallest_auc", 0.9969),
    ("decisions", "suites", "scans", "by", "kind, frame, form", 2, "sure", 89),
    ("decisions", "suites", "slab", "all", "right", 89),
    ("decisions", "suites", "slab", "all", "sure_and_wrong", 3),
    ("decisions", "suites", "cloud", "all", "sure_and_wrong", 1),
    ("decisions", "suites", "gap", "all", "right_and_sure", 97),
    ("decisions", "suites", "stretched", "by", SETTING, 0, "right", 94),
    ("decisions", "suites", "third", "all", "right", 124),
    ("decisions", "suites", "third", "all", "sure", 101),
    ("decisions", "suites", "third", "seconds", "unsure", 0.51),
    ("decisions", "times", "scans", "rows", 0, "median_ratio", 0.051),
    ("decisions", "times", "scans", "rows", 1, "median_ratio", 0.026),
    ("decisions", "times", "third", "rows", 0, "longest_ratio", 0.067),
    ("decisions", "times", "clear", "rows", 0, "median_ratio", 1.21),
]
