"""What the documentation shows works, and nothing public is missing from it."""

import csv
import importlib
import json
import re
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

import perpend
from docs_code import blocks, run_page
from helpers import CARDS
from perpend.estimator import METHODS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    page
    for folder in (".", "guide", "domains", "methods")
    for page in (DOCS / folder).glob("*.md")
    if any(True for _ in blocks(page))
)
NAMES = ("datasets", "exceptions", "formats", "metrics", "plots", "report", "theory")
MODULES = {f"perpend.{name}" for name in NAMES}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A folder to write to, and the registry of methods as it was."""
    monkeypatch.chdir(tmp_path)
    before = dict(METHODS)
    yield tmp_path
    METHODS.clear()
    METHODS.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_on_the_page_runs(page, own_folder):
    run_page(page)
    drawn = {picture.name for picture in own_folder.glob("*.png")}
    shown = set(re.findall(r"_static/domains/(\w+\.png)", page.read_text(encoding="utf-8")))
    if page.parent.name == "domains":  # each page draws the picture at its top
        assert shown == drawn
        assert len(shown) == 1
    assert all((DOCS / "_static" / "domains" / picture).exists() for picture in shown)


def test_pages_with_code_were_found():
    names = {str(page.relative_to(DOCS)) for page in PAGES}
    assert {"start.md", "add_a_method.md", "maths.md", "methods/DPCP.md"} <= names
    assert len([name for name in names if name.startswith("domains")]) == 4
    assert len([name for name in names if name.startswith("guide")]) >= 9


def test_a_page_that_is_wrong_fails(tmp_path, own_folder):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="Expected"):
        run_page(page)
    page.write_text("```sh\nperpend fit nothing.csv -o there\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="ends with"):
        run_page(page)
    page.write_text("```sh\nperpend fit FILE --no-such-option\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="no option"):
        run_page(page)


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "results.md"], ids=lambda p: p.stem)
def test_headline_numbers_are_those_of_the_stored_results(page):
    text = page.read_text(encoding="utf-8")
    targets = stored("recovery")["targets"]

    def count(key, *names):
        chosen = [targets[f"{name} n_starts=auto"] for name in names]
        return f"in {sum(one[key] for one in chosen)} of {sum(one['of'] for one in chosen)} |"

    large, noisy = "D=200 N=1500 M={} noise=0.0", "D=200 N=1500 M=2250 noise={}"
    assert "exact " + count("exact", large.format(2250), large.format(3500)) in text
    assert "codimension " + count("right", noisy.format(0.05), noisy.format(0.1)) in text
    small = ("D=30 N=500 M=1167", "D=10 N=2000 M=8000", "D=3 N=200 M=200")
    counts = ["exact " + count("exact", f"{name} noise=0.0") for name in small]
    assert all(text.count(each) == counts.count(each) for each in counts)
    (beyond,) = (row for row in stored("robustness")["results"] if row["r"] == 0.84)
    assert f"84 % outliers | exact in {beyond['recovered']} of {beyond['seeds']}" in text or (
        f"84 % | 0 | exact in {beyond['recovered']} of {beyond['seeds']}" in text
    )
    many = stored("many_rows")
    assert re.search(rf"\b{many['seconds']:.0f} s", text)
    assert f"{many['memory_beyond_the_data_gib']:.1f} GiB on top of the data" in text
    costs = [row["gram_pcas"] for row in stored("fits")["gram_pcas"] if row["method"] == "DPCP()"]
    assert f"{np.mean(costs):.0f} PCAs" in text or f"{min(costs)} to {max(costs)} PCAs" in text
    path = DOCS / "reproduction" / "calibration" / "estimates.csv"
    estimates = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    right, sure = (np.array([row[key] == "True" for row in estimates]) for key in ("right", "sure"))
    assert {row[key] for row in estimates for key in ("right", "sure")} <= {"True", "False"}
    assert f"{len(estimates)} random problems of" in text
    assert f"{np.sum(right & sure)} of {np.sum(sure)}" in text
    assert f"{100 * np.mean(sure[right]):.0f} % of the right ones" in text


def test_slabs_and_clouds_on_the_page_of_results_are_those_that_are_stored():
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    suites = stored("decisions")["suites"]
    slab, cloud = suites["slab"]["all"], suites["cloud"]["all"]
    said = f"right in {slab['right']}; sure and wrong in {slab['sure_and_wrong']} |"
    assert f"| {slab['problems']} thin planes inside thick slabs | {said}" in text
    said = f"a sure subspace in {cloud['sure']} of them |"
    assert f"| {cloud['problems']} smooth clouds without a subspace | {said}" in text


def test_every_card_is_that_of_a_method():
    all_ = {*perpend._METHODS, *perpend._LABELS_ONLY}
    described = {name for name in all_ if getattr(perpend, name).capabilities.solves}
    assert described <= CARDS <= all_


def test_the_table_and_the_facts_of_the_cards_are_complete(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    rows = importlib.import_module("method_rows")
    assert rows.check(DOCS / "methods") == []
    assert len(rows.table(DOCS / "methods")) == 2 + len(perpend._METHODS) + len(
        perpend._LABELS_ONLY
    )
    assert "| **you must give** | nothing |" in rows.facts("DPCP")
    assert any("roughly** | 15 minutes for 3750 rows" in line for line in rows.facts("MDR"))
    assert any("roughly** | 0.1 s for 3750 rows" in line for line in rows.facts("CoherencePursuit"))


def plain(text):
    """The text without accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def test_the_bibliography_has_whatever_is_cited():
    """The references of the cards, and what the code cites as "One, Two and Three, 1999"."""
    entries = plain((DOCS / "bibliography.md").read_text(encoding="utf-8")).splitlines()
    cited = {
        (one.split()[0].strip(","), one.split()[-1])
        for name in CARDS
        for one in getattr(perpend, name).capabilities.reference.split("; ")
    }
    citation = re.compile(
        r"([A-Z]\w+)(?:, [A-Z]\w+)*,? (?:and [A-Z]\w+|et al\.),? \(?((?:19|20)\d\d)"
    )
    for path in (ROOT / "src").rglob("*.py"):
        cited |= {*citation.findall(plain(path.read_text(encoding="utf-8")))}
    missing = [(a, y) for a, y in cited if not any(a in line and y in line for line in entries)]
    assert len(cited) > 25
    assert not missing


def test_every_public_name_is_in_the_reference():
    page = (DOCS / "api.rst").read_text(encoding="utf-8")
    words = {word.lstrip("~") for word in page.split()}
    # A method has its place there once it has a card.
    later = {word for pair in perpend._METHODS.items() if pair[0] not in CARDS for word in pair}
    missing = {name for name in perpend.__all__ if f"perpend.{name}" not in words}
    assert missing <= {"__version__"} | later
    for word in words:
        if word.startswith("perpend."):
            module, _, name = word.rpartition(".")
            assert word in MODULES or hasattr(importlib.import_module(module), name), word


def test_every_module_in_the_reference_says_what_is_public():
    for name in MODULES:
        assert importlib.import_module(name).__all__


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short_and_compile(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    compile(text, str(path), "exec")


def test_every_example_is_seeded():
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert "random_state=" in text or "default_rng(0)" in text, path.name


def test_the_picture_of_the_readme_is_drawn_from_a_fit(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(DOCS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import result_picture
    monkeypatch.setattr(result_picture, "TARGET", tmp_path / "picture.png")
    result_picture.draw()
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    sys.modules.pop("result_picture")
