"""Small stand-ins for the files of the boards, in the same format."""

import numpy as np

from studies.boards._files import SOURCES
from studies.boards._references import transfer_errors
from studies.boards.classics import KNOWN


def write_stand_ins(root, kinds=SOURCES):
    """Write every kind of data as a few hundred rows whose subspace is known."""
    for kind in kinds:
        folder = root / SOURCES[kind].folder
        folder.mkdir(parents=True)
        for number, name in enumerate(SOURCES[kind].files):
            rng = np.random.default_rng(number)
            if kind == "classics":
                X = classic(rng, KNOWN[name.removesuffix(".csv")])
                np.savetxt(folder / name, X, delimiter=",", header="names", comments="")
            else:
                np.savez(folder / name, **MAKERS[kind](rng))
    return root


def plane(truth, rng, n=400):
    """Half of the points on a plane below the sensor, half anywhere."""
    points = rng.uniform(-2, 2, (n, 3))
    on = np.arange(n) < n // 2
    points[on, 2] = -1 + 0.02 * points[on, 0] + 0.002 * rng.standard_normal(n // 2)
    return {"points": points.astype(np.float32), truth: on.astype(np.uint8)}


def scene(rng, side=20, bands=24):
    """A background of three materials, and a few pixels of a fourth."""
    shares = rng.dirichlet(np.ones(3), (side, side))
    cube = shares @ rng.uniform(100, 1000, (3, bands)) + rng.standard_normal((side, side, bands))
    mask = rng.uniform(size=(side, side)) < 0.03
    cube[mask] += rng.uniform(0, 300, bands)
    return {"cube": np.maximum(cube, 0).astype(np.uint16), "mask": mask.astype(np.uint8)}


def faces(rng, n_each=20, n_people=27):
    """Each person's images near a plane of their own in R^1024."""
    bases = rng.uniform(0, 60, (n_people, 2, 1024))
    light = rng.uniform(0.2, 2, (n_people, n_each, 2))
    images = light @ bases + rng.uniform(0, 4, (n_people, n_each, 1024))
    subject = np.repeat(np.arange(1, n_people + 1), n_each)
    return {"images": images.reshape(-1, 1024).astype(np.uint8), "subject": subject}


H = np.array([[0.9, 0.1, 30], [-0.05, 1.1, 12], [1e-4, 2e-4, 1]])


def matches(rng, n=120, right=80):
    """Most matches follow one homography, up to some noise; those are the first."""
    a, b = rng.uniform(0, 500, (2, n, 2))
    b[:right] = moved(a[:right]) + 0.2 * rng.standard_normal((right, 2))
    assert np.median(transfer_errors(H, a[:right], b[:right])) < 1
    return a, b, np.arange(n) < right


def moved(points):
    """Where the homography maps the points."""
    image = np.column_stack([points, np.ones(len(points))]) @ H.T
    return image[:, :2] / image[:, 2:]


def homogr(rng):
    """Two pairs of images, with points to judge by."""
    arrays = {}
    for name in ("adam", "boat"):
        a, b, right = matches(rng)
        check = rng.uniform(0, 500, (8, 2))
        arrays |= {f"{name}_first": a, f"{name}_second": b, f"{name}_inlier": right}
        arrays |= {f"{name}_check_first": check, f"{name}_check_second": moved(check)}
    return arrays


def adelaide(rng):
    """Two scenes with a homography, one of them under two names, and one for the other matrix."""
    arrays = {}
    for name in ("bonython", "sene"):
        a, b, right = matches(rng)
        points = np.column_stack([a, np.ones(len(a)), b, np.ones(len(a))]).astype(np.float32)
        arrays |= {f"H_{name}_pts": points, f"H_{name}_label": right.astype(np.int16)}
    arrays |= {"H_sene2_pts": arrays["H_sene_pts"], "H_sene2_label": arrays["H_sene_label"]}
    return arrays | {"F_cube_pts": points, "F_cube_label": right.astype(np.int16)}


def classic(rng, known, n=60):
    """The known rows are far out; the first column is to be left out."""
    X = rng.standard_normal((n, 4))
    X[np.array(known) - 1] += 20
    return np.column_stack([np.arange(n), X])


def outlier_table(rng, n=150):
    """Rows near a subspace of dimension 3 in R^8 away from zero, one constant column besides."""
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 8)) + 5
    X += 0.05 * rng.standard_normal(X.shape)
    y = (np.arange(n) < 10).astype(int)
    X[y == 1] += 6 * rng.standard_normal((10, 8))
    return {"X": np.column_stack([X, np.ones(n)]), "y": y}


MAKERS = {
    "tables": outlier_table,
    "scenes": scene,
    "roads": lambda rng: plane("is_road", rng),
    "tabletops": lambda rng: plane("is_table", rng),
    "homogr": homogr,
    "adelaide": adelaide,
    "faces": faces,
}
