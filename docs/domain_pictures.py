"""The pictures of the pages in docs/domains, as the code on those pages draws them.

Run ``python docs/domain_pictures.py`` to make them again. Each page is run in an empty folder, and
the PNG that it writes is copied to ``docs/_static/domains``. All data is synthetic.
"""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE / "_static" / "domains"


def draw() -> None:
    """Run each page, and keep its picture."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from docs_code import run_page

    TARGET.mkdir(exist_ok=True)
    for page in sorted((HERE / "domains").glob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.chdir(folder):
                run_page(page)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, TARGET)


if __name__ == "__main__":
    draw()
