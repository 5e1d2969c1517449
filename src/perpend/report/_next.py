"""Code and commands of this fit with some settings changed, for the section "What to try next"."""

import shlex

from perpend.report._text import Facts


def fit_code(facts: Facts, rows: str = "X", **changes: object) -> str:
    """Return the code of this fit with some settings changed."""
    method = facts["estimate"]["method"]
    settings = _settings(facts) | {key: repr(value) for key, value in changes.items()}
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"from perpend import {method}\n\nmodel = {method}({arguments}).fit({rows})"


def command(facts: Facts, name: str, **changes: str) -> str:
    """Return the command for the same file with the same settings, if it has options for them."""
    settings = _settings(facts) | changes
    words = ["perpend", name, shlex.quote(facts["data"]["name"] or "YOUR_FILE")]
    if name == "fit":
        words += ["-o RESULTS"]
        method = facts["estimate"]["method"]
        words += [f"--method {method}"] if method != "DPCP" else []
    if "codimension" in settings:
        words.append(f"--codimension {settings['codimension']}")
    affine = settings.get("affine", "False")  # the command line's own default is not Python's
    words.append("--affine " + {"True": "yes", "False": "no"}.get(affine, "auto"))
    if name == "fit" and "normalize" in settings:
        words.append("--no-normalize")
    return " ".join(words)


def _settings(facts: Facts) -> dict[str, str]:
    """Return the arguments, as code, that change the estimate."""
    estimate = facts["estimate"]
    parameters, settings = estimate["parameters"], {}
    if estimate["given"]:
        settings["codimension"] = str(estimate["codimension"])
    if parameters.get("affine") in ("True", "auto"):
        settings["affine"] = "True" if parameters["affine"] == "True" else '"auto"'
    if parameters.get("normalize") == "False":
        settings["normalize"] = "False"
    return settings
