"""``python -m studies``: the frame of ``perpend reproduce``, and the pages of both."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perpend.cli import main
from studies import STUDIES, _pages
from studies.__main__ import app

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "reproduction"


@pytest.fixture
def study(capsys):
    """Run a command in this process; returns exit code, stdout and stderr."""

    def call(*args):
        code = main([*map(str, args)], program=app, name=STUDIES.command)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def made(tmp_path):
    """A folder with the stored results of an experiment and of a study."""
    folder = tmp_path / "docs" / "made"
    for name in ("limits", "phase-transition"):
        shutil.copytree(STORED / name, folder / name, ignore=shutil.ignore_patterns("page.md"))
    return folder


def test_studies_are_run_by_the_same_frame(study, tmp_path):
    command = [sys.executable, "-m", "studies", "list"]  # the only one that needs the checkout
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*STUDIES.names, "all"]
    code, _, err = study("theory")
    assert code == 2
    assert "There are: calibration, limits, field, sweep, boards/tables" in err
    assert "See: python -m studies --help" in err
    made = tmp_path / "made"
    code, out, _ = study("calibration", "--quick", "--seeds", 1, "--jobs", 1, "--out", made)
    assert code == 0
    assert "result      On the 1 problem" in out
    page = made.with_suffix(".md").read_text()
    assert "Made by `python -m studies calibration --quick --seeds 1`" in page
    assert (made / "calibration" / "reliability.png").exists()


def test_pages_are_made_of_all_results_in_a_folder(study, made):
    code, out, _ = study("pages", "--out", made)
    page = made.with_suffix(".md")
    assert code == 0
    assert f"page        {page}" in out
    text = page.read_text()
    assert text.count("\n# ") == 1
    title = "How many outliers are tolerated (Figure 2)"
    assert f"- [{title}](#how-many-outliers-are-tolerated-figure-2)" in text
    assert f"\n## {title}\n" in text
    assert text.index(f"\n## {title}\n") < text.index("\n## Beyond the l1 limit\n")
    assert "\n### Published and ours\n" in text
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert "made/limits/recovery.png" in links
    assert all((page.parent / link).exists() for link in links)
    assert _pages.may_be_replaced(page)
    assert not re.search(r"20\d\d-\d\d|" + re.escape(str(made.parent)), text)  # no dates, no places


def test_a_folder_without_results_has_no_pages(study, tmp_path):
    code, _, err = study("pages", "--out", tmp_path / "empty")
    assert code == 3
    assert "empty: has no stored results" in err


def test_a_foreign_page_is_not_overwritten(study, made):
    page = made.with_suffix(".md")
    page.write_text("# Mine\n")
    for name in ("pages", "limits"):
        code, _, err = study(name, "--out", made)
        assert code == 2
        assert "not a page that perpend wrote" in err
    assert page.read_text() == "# Mine\n"


def test_the_page_needs_a_place(study, tmp_path):
    code, _, err = study("pages", "--out", "/")
    assert code == 2
    assert "Choose a folder below" in err
    (tmp_path / "made.md").mkdir()
    code, _, err = study("pages", "--out", tmp_path / "made")
    assert code == 2
    assert "is a folder" in err


def test_parts_keep_their_code_and_foreign_links():
    text = "# T\n\n[a](b.csv) [c](https://d.e/f) [g](#h)\n\n```sh\n# [x](y)\n```\n"
    deeper = _pages.one_deeper(text, "made/toy")
    assert "## T" in deeper
    assert "[a](made/toy/b.csv) [c](https://d.e/f) [g](#h)" in deeper
    assert "\n# [x](y)\n" in deeper
