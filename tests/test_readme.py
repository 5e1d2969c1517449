"""What the README shows works."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_in_the_readme_runs_and_finds_the_subspace() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["model"].codimension_ == 5


def test_the_two_commands_come_first() -> None:
    start = README.read_text(encoding="utf-8")[:400]
    assert "make demo" in start
    assert "make test" in start
