"""The page report.html, written with the other results; they stay if it fails."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from perpend.cli._crash import bug_message
from perpend.cli._input import Source
from perpend.cli._output import FACTS, REPORT
from perpend.cli._summary import collected_warnings
from perpend.exceptions import PerpendError

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Answer, Dataset


def add_report(  # noqa: PLR0917
    folder: Path,
    model: "SubspaceEstimator",
    data: "Dataset",
    answer: "Answer",
    result: dict[str, Any],
    source: Source,
) -> list[str]:
    """Write report.html; if that fails, return why, and keep the other results."""
    try:
        from perpend.report import write_report

        with collected_warnings():
            write_report(
                folder / REPORT,
                model,
                data,
                answer=answer,
                result=result,
                title=source.name if source.is_stdin else None,
                facts_path=folder / FACTS,
            )
    except PerpendError as error:
        return [f"there is no {REPORT}: {error}"]
    except OSError:
        raise  # a full disk concerns all files
    except Exception as error:  # noqa: BLE001
        for name in (REPORT, FACTS):
            (folder / name).unlink(missing_ok=True)
        return [f"there is no {REPORT}: {bug_message(error)}"]
    return []
