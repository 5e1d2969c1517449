"""Every case of the catalogue ends as it says, also with little memory and little time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.bad_inputs import CASES
from cli.bad_inputs._apart import is_run
from cli.bad_inputs._run import Done, carry_out, make_models, problems

HERE = Path(__file__).parents[1]

OTHERS = [case for case in CASES if case.args[0] in ("apply", "compare", "inspect")]
FITS = [case for case in CASES if case.args[0] == "fit"]  # so many that a sample must do
WITH_JSON = OTHERS + [case for i, case in enumerate(FITS) if i % 6 == 0 or case.code in (5, 6)]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files and users")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    make_models(folder)
    return folder


def test_the_catalogue_is_large_and_has_no_case_twice():
    assert len(CASES) >= 200
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("case", CASES, ids=[ascii(case.name) for case in CASES])
def test_case(case, models):
    if case.needs:
        pytest.importorskip(case.needs)
    done = carry_out(case, models)
    assert not problems(case, done), done


@pytest.mark.parametrize("case", WITH_JSON, ids=[ascii(case.name) for case in WITH_JSON])
def test_case_with_json(case, models):
    if case.needs:
        pytest.importorskip(case.needs)
    args = (case.args[0], "--json", *case.args[1:])
    case = case._replace(args=args)
    done = carry_out(case, models)
    assert not problems(case, done), done


def test_cases_with_json_are_of_all_kinds():
    assert {case.code for case in WITH_JSON} == {2, 3, 5, 6}
    assert {case.args[0] for case in WITH_JSON} == {"apply", "compare", "fit", "inspect"}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to know its size")
def test_all_with_little_memory_and_time(tmp_path):
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cli.bad_inputs._apart"]
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    reports: dict[int, dict] = {}
    for line in done.stdout.splitlines():
        report = json.loads(line)
        reports.setdefault(report["case"], {}).update(report)
    assert set(reports) == {number for number, case in enumerate(CASES) if is_run(case)}
    wrong = {}
    for number, report in reports.items():
        case = CASES[number]
        if "done" not in report:
            wrong[case.name] = report.get("crash", f"signal {report['signal']}")
        elif found := problems(case, Done(*report["done"])):
            wrong[case.name] = f"{found}: {report['done']}"
    assert wrong == {}
