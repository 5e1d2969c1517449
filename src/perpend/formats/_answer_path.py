"""The file that the labels are written to."""

from pathlib import Path

from perpend.formats._dataset import Dataset
from perpend.formats._registry import BY_NAME


def answer_path(dataset: Dataset, folder: Path) -> Path:
    """Return the name of the source with ``-answer`` before the suffix."""
    source = Path(dataset.source)
    suffixes = BY_NAME[dataset.format].suffixes
    suffix = source.suffix if source.suffix.lower() in suffixes else suffixes[0]
    return folder / f"{source.stem}-answer{suffix}"
