"""Checkpoints: an interrupted fit goes on, and ends bit for bit as an undisturbed one."""

import copy
import errno
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from helpers import mostly_slow
from perpend import DPCP, DPCPIRLS, FMS, GGD, RANSAC, REAPER, RSGM, TME, open_rows
from perpend.cli import main
from perpend.datasets import make_subspace
from perpend.exceptions import CheckpointError, ClusterError, InputError
from perpend.rows import ArrayRows, as_rows, checkpoint, journal

DATA = make_subspace(700, 500, n_features=7, codimension=2, noise=0.01, random_state=218_000)
GAPS = np.where(np.random.default_rng(0).random(DATA.X.shape) < 0.01, np.nan, DATA.X)


class Killed(BaseException):
    """Ends a fit as no except clause of its own would."""


class Scans:
    """Counts the scans of arrays, and ends the fit after some."""

    def __init__(self, monkeypatch):
        self.n, self.most, scan = 0, np.inf, ArrayRows.scan

        def counted(*args, **how):
            if self.n >= self.most:
                raise Killed
            self.n += 1
            return scan(*args, **how)

        monkeypatch.setattr(ArrayRows, "scan", counted)

    def reset(self, most=np.inf):
        self.n, self.most = 0, most


@pytest.fixture
def scans(monkeypatch):
    """Count scans, with everything recorded and saved every few of them."""
    monkeypatch.setattr(journal, "BYTES_PER_SECOND", np.inf)
    monkeypatch.setattr(journal, "SECONDS", 0.02)
    monkeypatch.setattr(journal, "TIMES_LONGER", 0)
    return Scans(monkeypatch)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def fitted(model, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return copy.deepcopy(model).fit(*args, **how)


def rsgm(**how):
    return RSGM(**{"codimension": 2, "random_state": 3, **how})


def begun(path, scans, model=None, X=DATA.X, most=12):
    """Leave the checkpoint of a fit that was killed."""
    scans.reset(most)
    with pytest.raises(Killed):
        fitted(rsgm() if model is None else model, X, checkpoint=path)
    scans.reset()


def assert_same(model, other):
    for name, value in vars(model).items():
        if name not in {"callback", "random_state"}:
            again = vars(other)[name]
            assert repr(value) == repr(again), name
            if isinstance(value, np.ndarray):
                assert value.tobytes() == again.tobytes(), name


CASES = {
    "DPCP": (DPCP(random_state=1), DATA.X),
    "published": (DPCP(refine=False, max_iter=50, random_state=1), DATA.X),
    "affine": (DPCP(affine="auto", random_state=1), DATA.X + 1),
    "float32": (rsgm(), DATA.X.astype(np.float32)),
    "by columns": (rsgm(), np.asfortranarray(DATA.X)),
    "mask": (DPCP(missing="mask", random_state=1), GAPS),
    "both": (DPCP(outliers="both", random_state=1), DATA.X),
    "lifted": (rsgm(affine=True), DATA.X + 1),
    "threads": (rsgm(n_jobs=2), DATA.X),
    "few rows": (DPCP(random_state=1), DATA.X[:4] @ np.ones((7, 20))),
    **{
        kind.__name__: (kind(codimension=2, random_state=1), DATA.X)
        for kind in (DPCPIRLS, FMS, GGD, RANSAC, REAPER, TME)
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_fit_that_is_killed_again_and_again_ends_the_same(name, path, scans):
    model, X = CASES[name]
    undisturbed = fitted(model, X)
    once, scans.n = scans.n, 0
    most, n_fits, total = max(6, once // 3), 0, 0
    found = None
    while found is None:
        scans.reset(most)
        n_fits += 1
        try:
            found = fitted(model, X, checkpoint=path)
        except Killed:
            assert n_fits < 12, "no progress"
        total += scans.n
    assert_same(undisturbed, found)
    # A resumed fit repeats the first pass over each source, and one for values that it still needs.
    assert total <= once + n_fits * most / 2


def test_groups_weights_and_history(path, scans):
    groups, weight = np.arange(1200) // 2, np.repeat([1.0, 2.0], 600)
    model, how = rsgm(), {"groups": groups, "sample_weight": weight}
    undisturbed = fitted(model, DATA.X, **how)
    scans.reset(15)
    with pytest.raises(Killed):
        fitted(model, DATA.X, checkpoint=path, **how)
    scans.reset()
    assert_same(undisturbed, fitted(model, DATA.X, checkpoint=path, **how))


@pytest.mark.parametrize("place", ["disk", "blocks", "sparse"])
def test_rows_that_are_not_in_memory(place, path, scans):
    np.save(path.with_name("x.npy"), DATA.X)

    def rows():
        if place == "disk":
            return open_rows(path.with_name("x.npy"), memory_limit="4MiB")
        if place == "blocks":
            return open_rows(lambda: iter(np.array_split(DATA.X, 5)), memory_limit="4MiB")
        return csr_array(DATA.X)

    undisturbed = rsgm().fit(rows())
    begun(path, scans, X=rows())
    assert_same(undisturbed, rsgm().fit(rows(), checkpoint=path))
    X = csr_array(DATA.X[::-1]) if place == "sparse" else open_rows([DATA.X[::-1]])
    with pytest.raises(CheckpointError, match=r"rows read in windows, sha256 .* there and"):
        rsgm().fit(X, checkpoint=path)
    again = rows()
    scans.reset()
    rsgm().fit(again, checkpoint=path)
    assert scans.n <= 2
    assert getattr(again, "passes", 0) <= 5  # norms, the check, labels; blocks count their rows


def test_resuming_a_complete_fit_needs_hardly_any_pass(path, scans):
    fitted(rsgm(), DATA.X, checkpoint=path)
    assert scans.n > 20
    scans.reset()
    fitted(rsgm(), DATA.X, checkpoint=path)
    assert scans.n <= 2


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_a_generator_goes_on_from_where_the_first_fit_began(kind, path, scans):
    model = RANSAC(codimension=2)
    mine = np.random.Generator(kind(5))
    model.random_state = mine
    undisturbed = model.fit(DATA.X)
    begun(path, scans, RANSAC(codimension=2, random_state=np.random.Generator(kind(5))), most=8)
    other = np.random.Generator(kind(6))
    model = RANSAC(codimension=2, random_state=other).fit(DATA.X, checkpoint=path)
    assert_same(undisturbed, model)
    assert other.random() == mine.random()
    wrong = RANSAC(codimension=2, random_state=np.random.Generator(np.random.SFC64(5)))
    with pytest.raises(CheckpointError, match="generator, and random_state is another kind"):
        wrong.fit(DATA.X, checkpoint=path)


def test_without_a_seed_it_goes_on_with_the_same_draws(path, scans):
    model = RANSAC(codimension=2)
    first = fitted(model, DATA.X, checkpoint=path)
    assert_same(first, fitted(model, DATA.X, checkpoint=path))


def test_an_interruption_is_saved_and_raised(path, monkeypatch):
    monkeypatch.setattr(journal, "BYTES_PER_SECOND", np.inf)  # and SECONDS stays

    def interrupt(progress):
        if progress.step == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rsgm(callback=interrupt).fit(DATA.X, checkpoint=path)
    counted = Scans(monkeypatch)
    undisturbed = rsgm().fit(DATA.X)
    once, counted.n = counted.n, 0
    assert_same(undisturbed, rsgm().fit(DATA.X, checkpoint=path))
    assert counted.n < once - 5


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "X", "differs"),
    [
        (rsgm(), DATA.X[1:], "number of rows 1200 there and 1199 here"),
        (rsgm(), DATA.X[::-1], "rows in memory, sha256 .* there and in memory, sha256"),
        (rsgm(), open_rows([DATA.X]), "rows in memory, .* there and read in windows, .* here[.]"),
        (rsgm(), DATA.X.astype(np.float32), "type of the rows float64 there and float32"),
        (rsgm(max_iter=7), DATA.X, r"max_iter \d+ there and 7 here"),
        (rsgm(random_state=4), DATA.X, "random_state 3 there and 4 here"),
        (rsgm(random_state=None), DATA.X, "random_state 3 there and not a number here"),
        (DPCPIRLS(codimension=2), DATA.X, "method RSGM there and DPCPIRLS here"),
    ],
)
def test_the_checkpoint_of_another_fit_is_refused_and_kept(model, X, differs, path, scans):
    begun(path, scans)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=differs):
        model.fit(X, checkpoint=path)
    assert path.read_bytes() == before


def test_another_weight_and_another_version_are_refused(path, scans, monkeypatch):
    begun(path, scans)
    with pytest.raises(CheckpointError, match="sample_weight None there and sha256"):
        rsgm().fit(DATA.X, sample_weight=np.ones(1200), checkpoint=path)
    monkeypatch.setattr(checkpoint, "__version__", "99.0")
    with pytest.raises(CheckpointError, match=r"version of perpend .* there and 99\.0 here"):
        rsgm().fit(DATA.X, checkpoint=path)


def test_one_changed_row_is_noticed(path, scans):
    begun(path, scans)
    path.with_name(f".{path.name}.0123abcd.tmp").touch()  # as a kill may leave behind
    before, X = path.read_bytes(), DATA.X.copy()
    X[10] *= -1
    X[10, 0] += 1e-9
    with pytest.raises(CheckpointError, match="the rows have changed, or this machine rounds"):
        rsgm().fit(X, checkpoint=path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_changed_rows_of_a_subsample_are_noticed(path, scans):
    model = DPCP(sample_size=300, random_state=1)
    begun(path, scans, model, most=3)  # all of them of the subsample
    shown = np.linspace(0, 1199, checkpoint.SOME_ROWS).astype(int)
    X = DATA.X + 1e-6 * (~np.isin(np.arange(1200), shown))[:, None]
    with pytest.raises(CheckpointError, match="the rows have changed"):
        model.fit(X, checkpoint=path)


def test_a_cut_or_damaged_or_foreign_file_is_refused_and_kept(path, scans):
    begun(path, scans)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for content in (
        whole[:-1],
        whole[: len(whole) // 2],
        whole[:25],
        whole + b"\n",
        bytes(flipped),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is cut or damaged"):
            rsgm().fit(DATA.X, checkpoint=path)
        assert path.read_bytes() == content
    for content in (b"", b"x,y\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is not a checkpoint"):
            rsgm().fit(DATA.X, checkpoint=path)
        assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_shows_before_the_work(tmp_path, scans):
    for place in (tmp_path / "nowhere" / "fit.checkpoint", tmp_path):
        with pytest.raises(OSError, match=str(place)):
            rsgm().fit(DATA.X, checkpoint=place)
    assert scans.n == 0


def test_a_fit_that_fails_at_once_leaves_nothing(tmp_path, path, capsys):
    with pytest.raises(InputError, match="Every row of X is zero"):
        rsgm().fit(np.zeros((5, 3)), checkpoint=path)
    assert not path.exists()
    np.save(tmp_path / "x.npy", DATA.X[:, :3])
    assert main(arguments(tmp_path, "out")) == 3
    assert "codimension=4 is larger than" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full_leaves_the_last_checkpoint(path, scans, monkeypatch):
    begun(path, scans)
    before = path.read_bytes()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=f"No space left on device.*{path.name}"):
            rsgm().fit(DATA.X, checkpoint=path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert_same(rsgm().fit(DATA.X), rsgm().fit(DATA.X, checkpoint=path))


def test_two_fits_cannot_share_a_checkpoint(path, scans):
    other = []

    def meddle(progress):
        if progress.step == 5 and not other:
            other.append(path.read_bytes())
            path.write_bytes(other[0].replace(b'"number', b'"NUMBER', 1))

    with pytest.raises(CheckpointError, match="was changed while this fit ran"):
        rsgm(callback=meddle).fit(DATA.X, checkpoint=path)


# -- what is recorded ------------------------------------------------------------------------------


def test_a_callback_that_ends_otherwise_is_warned_about(path, scans):
    begun(path, scans, most=20)
    early = rsgm(callback=lambda progress: progress.step == 5)
    differs = "the fit differs from the saved one at pass"
    with pytest.warns(ConvergenceWarning), pytest.warns(UserWarning, match=differs):
        found = early.fit(DATA.X, checkpoint=path)
    assert_same(fitted(early, DATA.X), found)
    assert_same(found, fitted(early, DATA.X, checkpoint=path))  # the rest was replaced


def empty(path):
    rng = np.random.default_rng(0)
    identity = {"generator": checkpoint._state(rng.bit_generator.state)}
    file = checkpoint.CheckpointFile(path)
    file.begin(identity, rng)
    return journal.Journal(file, 0)


def test_results_that_are_cheaper_to_compute_than_to_write_are_not_recorded(
    path, scans, monkeypatch
):
    rows = empty(path)
    before = path.stat().st_size
    monkeypatch.setattr(journal, "BYTES_PER_SECOND", 1000)
    rows.record(rows.recorded(["large"])[0], [np.zeros(1000)], seconds=1.0)
    rows.save()
    assert path.stat().st_size == before
    rows.record(rows.recorded(["small"])[0], [np.zeros(100)], seconds=1.0)
    rows.save()
    assert path.stat().st_size > before + 800
    again = empty(path)
    assert again.recorded(["large"])[1] is None
    np.testing.assert_array_equal(again.recorded(["small"])[1][0], np.zeros(100))


class Power:
    """A kernel that is an object, with an address in its repr."""


def test_arguments_have_the_same_key_in_every_process():
    array = np.arange(9.0)

    def key(*what):
        return journal._key(what)

    kernels = [partial(np.add, array, where=1), partial(np.add, array, where=2), Power()]
    again = [partial(np.add, array.copy(), where=1), partial(np.add, array, where=2), Power()]
    assert [key(one, array) for one in kernels] == [key(one, array) for one in again]
    assert len({key(one) for one in kernels}) == 3
    assert key(np.append(array, 1)) != key(np.append(array, 1 + 1e-12))


def test_tensors_have_keys_by_their_bytes():
    torch, key = pytest.importorskip("torch"), journal._key
    assert key(torch.tensor([1.0])) != key(torch.tensor([1.0 + 1e-6]))  # which print the same


def test_a_checkpoint_is_bounded(path, scans, monkeypatch):
    monkeypatch.setattr(journal, "LEAST_LIMIT", 5000)
    rows = empty(path)
    for i in range(20):
        rows.record(rows.recorded([i])[0], [np.zeros(100)], seconds=1.0)
    rows.save()
    assert 4000 < path.stat().st_size <= 5000


def test_the_order_in_memory_comes_back(path, scans):
    values = np.arange(6.0).reshape(2, 3)
    given = [values, np.asfortranarray(values), None, np.zeros((2, 0)), np.float32(values)]
    rows = empty(path)
    rows.record(rows.recorded(["all"])[0], given, seconds=1.0)
    rows.save()
    for one, other in zip(given, empty(path).recorded(["all"])[1], strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
            for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE"):
                assert one.flags[flag] == other.flags[flag]


def test_without_a_checkpoint_rows_are_as_they_are():
    seen = []
    rsgm(callback=lambda _: seen.append(type(as_rows(DATA.X)))).fit(DATA.X)
    assert set(seen) == {ArrayRows}


# -- the command line ------------------------------------------------------------------------------

EAGER = """
import sys
from perpend.cli import main
from perpend.rows import journal
journal.SECONDS = 0.05
sys.exit(main(sys.argv[1:]))
"""  # the command, saving more often than every two seconds


def arguments(folder, name):
    how = ["--method", "RSGM", "--codimension", "4", "--affine", "no", "--no-report", "--resume"]
    return [str(word) for word in ["fit", folder / "x.npy", "-o", folder / name, *how]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A file whose fit takes some dozen passes of a few milliseconds, and that fit."""
    tmp_path = tmp_path_factory.mktemp("stored")
    data = make_subspace(20_000, 30_000, n_features=30, codimension=4, random_state=218_001)
    np.save(tmp_path / "x.npy", data.X)
    assert main([*arguments(tmp_path, "undisturbed"), "-q"]) == 0
    return tmp_path


def assert_same_results(folder, name):
    for file in ("model.npz", "labels.csv"):
        assert (folder / name / file).read_bytes() == (folder / "undisturbed" / file).read_bytes()
    assert not list((folder / name).glob("*.checkpoint"))
    assert not list((folder / name).glob(".*"))  # drafts of killed processes


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ClusterError("gone")])
def test_an_interrupted_command_says_how_to_go_on(stored, monkeypatch, capsys, error):
    code, said = (5, "error: gone") if isinstance(error, ClusterError) else (130, "interrupted")
    name = f"ends with {code}"
    scan, n = ArrayRows.scan, iter(range(10**6))

    def interrupted(*args, **how):
        if next(n) == 30:
            raise error
        return scan(*args, **how)

    monkeypatch.setattr(ArrayRows, "scan", interrupted)
    assert main(arguments(stored, name)) == code
    saved = stored / name / "fit.checkpoint"
    assert capsys.readouterr().err == (
        f"saved to {saved}: run the same command again to go on\n{said}\n"
    )
    assert main(arguments(stored, name)) == 0
    assert capsys.readouterr().err.startswith(f"going on from {saved}\n")
    assert_same_results(stored, name)


def test_the_command_line_refuses_the_checkpoint_of_another_fit(stored, capsys):
    rsgm().fit(DATA.X, checkpoint=stored / "mine")
    assert main([*arguments(stored, "a"), "--checkpoint", str(stored / "mine")]) == 3
    assert "is the checkpoint of another fit" in capsys.readouterr().err
    assert main([*arguments(stored, "b"), "--checkpoint", str(stored / "x.npy")]) == 2
    assert "is the input" in capsys.readouterr().err


@pytest.mark.parametrize(
    "trial", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 6))]
)
def test_a_process_killed_at_random_moments_goes_on(stored, trial):
    rng, name = np.random.default_rng([218_002, trial]), f"out{trial}"
    saved = stored / name / "fit.checkpoint"
    for left in (2, 1, 0):  # kills
        process = subprocess.Popen([sys.executable, "-c", EAGER, *arguments(stored, name), "-q"])
        if left:
            while process.poll() is None and not saved.exists():
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.6))  # it may have ended by then
            process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) in ({0, -signal.SIGKILL} if left else {0})
    assert_same_results(stored, name)


KILLED = """
import os, signal, sys
from pathlib import Path
from perpend.cli import main

def killing(method):
    def one(path, *args, **how):
        found = method(path, *args, **how)
        if path.name == sys.argv[1] and not path.exists():  # it was moved, or is gone
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    return one

Path.replace, Path.unlink = killing(Path.replace), killing(Path.unlink)
main(sys.argv[2:])
"""  # the command, killed as soon as a file is in place, or a checkpoint deleted


MOMENTS = {
    "among the results": ("labels.csv", False),
    "among earlier ones": ("x-labelled.npy", True),
    "when the earlier result.json is gone": ("result.json", True),
    "before the checkpoint is deleted": ("result.json", False),
    "at the end": ("fit.checkpoint", False),
}


@pytest.mark.parametrize("when", mostly_slow(MOMENTS, "among earlier ones"))
def test_a_process_killed_among_its_results_goes_on(stored, capsys, when):
    """Results are moved one by one; an earlier set must not be mixed with them unnoticed."""
    moment, force = MOMENTS[when]
    command, folder = arguments(stored, when), stored / when
    if force:
        assert main([*command, "--seed", "7", "-q"]) == 0  # another fit
        earlier = (folder / "result.json").read_bytes()
        command.append("--force")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, moment, *command, "-q"], timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    complete = not force and moment in {"result.json", "fit.checkpoint"}
    assert (folder / "result.json").exists() == complete
    capsys.readouterr()
    assert main([one for one in command if one != "--force"]) == 0
    said = capsys.readouterr().err
    if moment == "fit.checkpoint":  # all was done
        assert said == f"{folder}: has the results of this command already\n"
    else:
        assert said.startswith("going on from")
    assert_same_results(stored, when)
    assert not force or (folder / "result.json").read_bytes() != earlier


def test_results_of_another_command_are_not_those_of_this_one(stored, tmp_path, capsys):
    command = arguments(stored, "other")
    folder = stored / "other"
    assert main(["-q" if one == "--resume" else one for one in command]) == 0
    capsys.readouterr()
    assert main([*command, "--json"]) == 0  # complete, though not by --resume
    assert json.loads(capsys.readouterr().out)["codimension"] == 4
    for more in (["--seed", "1"], ["--no-normalize"]):
        assert main([*command, *more]) == 2
        assert "already has labels.csv, model.npz, result.json" in capsys.readouterr().err
    changed = stored / "y.npy"
    np.save(changed, np.load(stored / "x.npy") + 1)
    assert main([command[0], str(changed), *command[2:]]) == 2
    labels = (folder / "labels.csv").read_bytes()
    (folder / "labels.csv").write_bytes(labels[:-1])
    assert main(command) == 2  # cut
    assert (folder / "labels.csv").read_bytes() == labels[:-1]


def test_what_was_noted_stays_if_records_are_cut_off(path, scans):
    rows = empty(path)
    for i in range(3):
        rows.record(rows.recorded([i])[0], [np.full(5, float(i))], seconds=1.0)
    rows.save()
    checkpoint.CheckpointFile(path).note_results(["labels.csv", "model.npz"])
    again = empty(path)
    again.recorded([0])
    with pytest.warns(UserWarning, match="the fit differs"):
        again.recorded(["another"])
    again.record(again.recorded(["new"])[0], [np.ones(2)], seconds=1.0)
    again.save()
    found = checkpoint.CheckpointFile(path)
    assert found.results == {"labels.csv", "model.npz"}
    assert len(found.records) == 2


def test_drafts_of_a_process_killed_in_its_first_save_are_removed(path, scans):
    left = path.with_name(f".{path.name}.0123abcd.tmp")
    left.touch()
    fitted(rsgm(), DATA.X, checkpoint=path)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
