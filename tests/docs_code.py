"""Code in Markdown pages, found and run: what the README and the documentation show must work.

A page is run from top to bottom in a folder of its own. ``python`` blocks are executed, ``pycon``
blocks are doctests in the same names, and ``perpend ...`` lines of ``sh`` blocks run the command
line. A line with a placeholder in capitals, as ``perpend fit FILE``, is a synopsis: its command and
options must exist. ``% needs: torch`` before a block skips it where that is missing. What needs
``cuda`` is run on the processor where there is torch but no GPU, so that the calls are tried there.
"""

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"(?:^% needs: (?P<needs>\w+)\n)?^(?P<indent> *)```(?P<kind>python|pycon|sh)\n"
    r"(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
UNSURE = 4  # exit code: results are written, but the result is not sure


class Block(NamedTuple):
    kind: str
    code: str
    line: int
    needs: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        margin = len(match["indent"])
        code = "".join(line[margin:] or "\n" for line in match["code"].splitlines(keepends=True))
        line = text[: match.start("code")].count("\n") + 1
        yield Block(match["kind"], code, line, match["needs"])


def run_page(page: Path) -> dict:
    """Run the blocks of a page in the current folder; return the names that are left."""
    names: dict = {"__name__": "__main__"}
    there = (block for block in blocks(page) if not block.needs or available(block.needs))
    for block in map(on_this_machine, there):
        if block.kind == "python":
            # Empty lines put the code where it stands on the page, for tracebacks.
            source = "\n" * (block.line - 1) + block.code
            exec(compile(source, str(page), "exec"), names)
        elif block.kind == "pycon":
            run_doctest(page, block, names)
        else:
            for command in commands(block):
                run_command(page, block, command)
    return names


def available(what: str) -> bool:
    return find_spec("torch" if what == "cuda" else what) is not None


def on_this_machine(block: Block) -> Block:
    """Return the block as it is, but on the processor if it needs a GPU and there is none."""
    if block.needs != "cuda" or __import__("torch").cuda.is_available():
        return block
    return block._replace(code=re.sub(r"\bcuda\b", "cpu", block.code))


def run_doctest(page: Path, block: Block, names: dict) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.code, names, page.name, str(page), block.line - 1
    )
    test.globs = names  # names that a block binds are there for the next one
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=said.write, clear_globs=False)
    assert runner.failures == 0, said.getvalue()


def commands(block: Block) -> list[list[str]]:
    """Return the arguments of the lines that call perpend."""
    lines = [shlex.split(line, comments=True) for line in block.code.splitlines()]
    return [words[1:] for words in lines if words and words[0] == "perpend"]


def run_command(page: Path, block: Block, command: list[str]) -> None:
    from perpend.cli import main

    where = f"{page.name}, line {block.line}: perpend {shlex.join(command)}"
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        if not any(PLACEHOLDER.search(word) for word in command):
            code = main(command)
            assert code in (0, UNSURE), f"{where} ends with {code}\n{said.getvalue()}"
            return
        assert main([command[0], "--help"]) == 0, where
    for option in [word for word in command if word.startswith("-")]:
        assert option.partition("=")[0] in said.getvalue(), f"{where}: no option {option}"
