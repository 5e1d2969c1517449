"""What the README shows works."""

import re
from pathlib import Path

from docs_code import run_page

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_python_in_the_readme_runs_and_finds_the_subspace() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["model"].codimension_ == 5


def test_all_code_and_commands_in_the_readme_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(README)["model"].codimension_ == 5


def test_targets_of_make_in_the_readme_exist() -> None:
    targets = re.findall(r"(?:^|`)make ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "docs", "test"} <= set(targets)
    assert all(f"\n{target}:" in makefile for target in targets)


def test_links_in_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    assert "docs/_static/result.png" in links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_two_commands_come_first() -> None:
    start = README.read_text(encoding="utf-8")[:600]
    assert "make demo" in start
    assert "make test" in start
