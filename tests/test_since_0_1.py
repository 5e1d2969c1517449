"""Everything that was public in version 0.1 is still accepted, in `public_0_1.txt`.

A name that has changed stays accepted by what `perpend._deprecation` has for it.
"""

import importlib
import inspect
from pathlib import Path

import pytest
from typer.main import get_command

from perpend.cli import app

TABLE = Path(__file__).with_name("public_0_1.txt").read_text(encoding="utf-8").splitlines()[1:]
COMMANDS = [line.split() for line in TABLE if line.startswith("perpend ")]
NAMES = [line.rstrip(")").partition("(") for line in TABLE if not line.startswith("perpend ")]
pytestmark = pytest.mark.filterwarnings("ignore:.* is now called:FutureWarning")
CALLABLE = [(name, signature) for name, called, signature in NAMES if called]


def public(name):
    """Return what has this dotted name; a function goes before the module of its name."""
    owner, _, last = name.rpartition(".")
    if owner and hasattr(home := public(owner), last):
        return getattr(home, last)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", [name for name, _, _ in NAMES])
def test_every_name_is_there(name):
    public(name)


@pytest.mark.parametrize(("name", "signature"), CALLABLE, ids=[name for name, _ in CALLABLE])
def test_every_parameter_is_accepted(name, signature):
    """By its name, also where that is an old one; in its place; and no further one is needed."""
    before = signature.replace("**", "").split(", ") if signature else []
    found = public(name)
    now = {k: p for k, p in inspect.signature(found).parameters.items() if k != "self"}
    function = found.__init__ if isinstance(found, type) else found
    old = getattr(function, "old_parameters", set())
    assert set(before) - {"*"} <= now.keys() | old
    in_place = [*before, "*"][: [*before, "*"].index("*")]
    new_names = list(now)[: len(in_place)]
    assert all(a in (b, *old) or b in old for a, b in zip(new_names, in_place, strict=True))
    needed = {k for k, p in now.items() if p.default is p.empty and p.kind != p.VAR_KEYWORD}
    made_by_perpend = isinstance(found, type) and issubclass(found, tuple)
    assert needed <= set(before) or old or made_by_perpend


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: " ".join(line[:2]))
def test_every_option_of_a_command_is_there(line):
    command = get_command(app)
    for word in (word for word in line[1:2] if word in command.commands):
        command = command.commands[word]
    now = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    assert set(line[1:]) - {command.name} <= now
