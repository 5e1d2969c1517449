"""The built documentation in a real browser: no page is wider than a screen, and no script fails.

Run after `make docs`. Pages made from docstrings are all alike, so one of them is enough; so are
those of the gallery.
"""

from pathlib import Path

import pytest

from report.browser import CHROMIUM, Browser

BUILT = Path(__file__).parents[1] / "docs/_build/html"
MANY = ("_", "generated", "gallery", "genindex", "py-modindex", "search")
PAGES = [
    page
    for page in sorted(BUILT.rglob("*.html"))
    if not str(page.relative_to(BUILT)).startswith(MANY)
    or page.stem in {"perpend.DPCP", "plot_01_first_fit"}
]
WIDTHS = 1200, 360

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
    pytest.mark.skipif(not PAGES, reason="needs the built documentation (make docs)"),
]


def test_every_page_fits_a_desk_and_a_phone(tmp_path):
    wrong = []
    with Browser(tmp_path) as browser:
        for page in PAGES:
            for width in WIDTHS:
                browser.open(page, width=width)
                needed = browser.run("document.documentElement.scrollWidth")
                failed = [what for what, _ in browser.events if what == "Runtime.exceptionThrown"]
                if needed > width or failed:
                    wrong.append((str(page.relative_to(BUILT)), width, needed, len(failed)))
    assert wrong == []
