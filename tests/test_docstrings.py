"""Whatever is public says what each of its parameters is, and what comes back."""

import importlib
import inspect
import re
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest

API = Path(__file__).parents[1] / "docs" / "api.rst"
FIELD = re.compile(r"^    (?P<name>[a-zA-Z]\w*): [^#]+  # \S")


def public_objects():
    """Functions and classes of the reference; of a module, those that its `__all__` names."""
    words = {word.lstrip("~") for word in API.read_text(encoding="utf-8").split()}
    for word in sorted(word for word in words if word.startswith("perpend.")):
        home, _, name = word.rpartition(".")
        found = getattr(importlib.import_module(home), name, None)
        if found is None or isinstance(found, ModuleType):
            module = importlib.import_module(word)
            yield from ((f"{word}.{name}", getattr(module, name)) for name in module.__all__)
        else:
            yield word, found


OBJECTS = dict(public_objects())
FUNCTIONS = {name: found for name, found in OBJECTS.items() if inspect.isfunction(found)}
CLASSES = {
    name: found
    for name, found in OBJECTS.items()
    if inspect.isclass(found) and not issubclass(found, Exception | Enum)
}
METHODS = {
    f"{name}.{method}": (found, method)
    for name, found in CLASSES.items()
    for method, function in inspect.getmembers(found, inspect.isroutine)
    if not method.startswith("_") and getattr(function, "__module__", "").startswith("perpend")
}


def section(doc, title):
    """The text of a section of a docstring; empty if there is none."""
    match = re.search(
        rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", doc, re.DOTALL | re.MULTILINE
    )
    return match[1] if match else ""


def documented(doc):
    """Names in the sections of parameters and attributes; several may share a line."""
    text = section(doc, "Parameters") + section(doc, "Attributes")
    lines = [line for line in text.splitlines() if line[:1].strip()]
    return {name.strip(" *") for line in lines for name in line.partition(":")[0].split(",")}


def parameters(call):
    return {name for name in inspect.signature(call).parameters if name not in ("self", "cls")}


def commented_fields(cls):
    """Fields of a record with a comment beside them, which the reference shows."""
    matches = map(FIELD.match, inspect.getsource(cls).splitlines())
    return {match["name"] for match in matches if match}


def returns_something(call):
    return inspect.signature(call).return_annotation not in (None, "None")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    doc = inspect.getdoc(FUNCTIONS[name])
    assert parameters(FUNCTIONS[name]) - documented(doc) == set()
    returned = section(doc, "Returns") or section(doc, "Yields")
    assert returned or not returns_something(FUNCTIONS[name])


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    cls = CLASSES[name]
    is_record = hasattr(cls, "_fields") or is_dataclass(cls)
    known = commented_fields(cls) if is_record else set()
    assert parameters(cls) - known - documented(inspect.getdoc(cls)) == set()


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    """A method may leave the words to the class that it was inherited from."""
    cls, method = METHODS[name]
    docs = [
        inspect.getdoc(vars(base)[method]) or "" for base in cls.__mro__ if method in vars(base)
    ]
    known = set().union(*map(documented, docs))
    assert parameters(getattr(cls, method)) - known == set()
    returned = any(section(doc, "Returns") for doc in docs)
    assert returned or not returns_something(getattr(cls, method))


def test_all_kinds_were_found():
    assert {"perpend.DPCP", "perpend.BatchSolution", "perpend.formats.Dataset"} <= CLASSES.keys()
    assert {"perpend.peel", "perpend.formats.read", "perpend.theory.theorem1"} <= FUNCTIONS.keys()
    assert {"perpend.DPCP.fit", "perpend.RSGM.predict"} <= METHODS.keys()


def test_what_is_missing_is_noticed():
    doc = "Do.\n\nParameters\n----------\na, b : int\n    Two.\n*c : float\n\nReturns\n-------\nint"
    assert documented(doc) == {"a", "b", "c"}
    assert section(doc, "Returns") == "int"
    assert documented("Do it; a and b are given.") == set()
    assert section("Return a.", "Returns") == ""
