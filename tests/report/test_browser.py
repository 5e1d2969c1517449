"""The page in a real browser: it opens, draws, has no console error and makes no request."""

import pytest

from perpend.report import write_report
from report.browser import CHROMIUM, Browser
from report.cases import CASES, cloud, dataset, image, table
from report.payloads import PAYLOADS

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium (apt-get install chromium)"
)

VIEW_BOX = "document.querySelector('#distances .plot').getAttribute('viewBox')"
COLOUR = "getComputedStyle(document.body).{}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {case: write_report(folder / f"{case.__name__}.html", *case()) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_page_opens_silently_and_fits_a_phone(browser, pages, case):
    for width in (1100, 360):
        browser.open(pages[case], width=width)
        assert browser.complaints() == []
        assert browser.requests() == [pages[case].resolve().as_uri()]
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelector('.verdict').innerText.length") > 40
    shapes = browser.run(
        "[...document.querySelectorAll('figure svg[role=img]')].map(svg => "
        "[...svg.querySelectorAll('rect, path')].filter(s => "
        "s.getBoundingClientRect().height > 1 || s.matches('.dots[d^=M]')).length)"
    )
    assert all(n > 0 for n in shapes)


def test_the_distances_zoom_by_keyboard_mouse_and_button(browser, pages):
    browser.open(pages[table])
    views = [browser.run(VIEW_BOX)]

    def wait_for_change():
        views.append(browser.run_until_not(VIEW_BOX, views[-1]))

    def width():
        return float(views[-1].split()[2])

    browser.run("document.querySelector('[data-zoom]').focus()")
    browser.press("+")
    wait_for_change()
    assert width() < float(views[0].split()[2])
    browser.press("ArrowLeft")
    wait_for_change()
    browser.press("0")
    wait_for_change()
    assert views[-1] == views[0]
    browser.run("document.querySelector('[data-zoom-do=near]').click()")
    wait_for_change()
    x, y = browser.point_in("[data-zoom]")
    browser.drag(x, y, x + 60, y)
    wait_for_change()
    ticks = browser.run("document.querySelectorAll('#distances .frame .tick').length")
    assert ticks > 3
    assert browser.complaints() == []


INK = """
(() => {
  const c = document.getElementById("cloud");
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  return d.filter((v, i) => i % 4 === 3 && v).length;
})()
"""
PICTURE = "document.getElementById('cloud').toDataURL()"


def test_the_cloud_is_drawn_and_turns(browser, pages):
    browser.open(pages[cloud])
    assert browser.run(INK) > 500  # pixels that are not empty
    seen = browser.run(PICTURE)
    browser.run("document.getElementById('cloud').focus()")
    for key in ("ArrowLeft", "ArrowUp", "+"):
        browser.press(key)
        seen = browser.run_until_not(PICTURE, seen)
    x, y = browser.point_in("#cloud")
    browser.drag(x, y, x + 80, y + 30)
    browser.run_until_not(PICTURE, seen)
    assert browser.complaints() == []


def test_the_scene_is_shown_and_its_mask_can_be_hidden(browser, pages):
    browser.open(pages[image])
    sizes = browser.run(
        "[...document.querySelectorAll('.scene img')].map(i => [i.naturalWidth, i.naturalHeight])"
    )
    assert sizes == [[15, 12]] * 3  # bands, mask, distances
    seen = "getComputedStyle(document.querySelector('.mask')).visibility"
    assert browser.run(seen) == "visible"
    browser.run("document.querySelector('[data-mask]').click()")
    assert browser.run(seen) == "hidden"


def test_dark_mode_changes_the_colours(browser, pages):
    browser.open(pages[table])
    light = [browser.run(COLOUR.format(key)) for key in ("backgroundColor", "color")]
    browser.open(pages[table], dark=True)
    dark = [browser.run(COLOUR.format(key)) for key in ("backgroundColor", "color")]
    assert light[0] == "rgb(255, 255, 255)"
    assert light[0] != dark[0]
    assert light[1] != dark[1]


def test_the_table_of_outliers_sorts_by_its_headings(browser, pages):
    browser.open(pages[table])
    column = (
        "[...document.querySelectorAll('.sortable tbody tr')].map(r => "
        "Number(r.cells[0].dataset.sort))"
    )
    first = browser.run(column)
    browser.run("document.querySelector('.sortable thead button').click()")
    assert browser.run(column) == sorted(first, reverse=True)
    browser.run("document.querySelector('.sortable thead button').click()")
    assert browser.run(column) == sorted(first) != first
    assert browser.run("document.querySelector('th[aria-sort]').ariaSort") == "ascending"


def test_everything_that_acts_can_be_reached_by_tab(browser, pages):
    browser.open(pages[table])
    browser.run("document.body.focus()")
    reached = []
    for _ in range(40):
        browser.press("Tab")
        reached.append(browser.run("document.activeElement.outerHTML.slice(0, 200)"))
    assert reached[0].startswith("<a")
    assert 'class="skip"' in reached[0]
    for part in ("data-zoom-do", "data-zoom", 'class="scroll"', "<pre"):
        assert any(part in html for html in reached), part


def test_payloads_do_not_run(browser, tmp_path):
    model, data = table()
    for begin in range(0, 50, 8):
        names = tuple((PAYLOADS * 2)[begin : begin + 8])
        result = {"warnings": names, "input": {"name": names[0], "sha256": names[1]}}
        rows = dataset(data.X, columns=names, source=f"{names[2]}.csv")
        path = write_report(tmp_path / f"{begin}.html", model, rows, result=result, title=names[3])
        browser.open(path)
        assert browser.run("window.pwned") is None
        assert browser.complaints() == []
        assert browser.requests() == [path.resolve().as_uri()]


def test_the_policy_stops_what_should_never_be_there(browser, pages, tmp_path):
    """Had a payload come through as markup, the browser itself would refuse it."""
    text = pages[table].read_text(encoding="utf-8")
    path = tmp_path / "broken.html"
    path.write_text(text.replace("<main>", "<main>" + "".join(PAYLOADS[:15])), encoding="utf-8")
    browser.open(path)
    assert browser.run("window.pwned") is None
    assert any("Content Security Policy" in said for said in browser.complaints())


def test_it_prints_without_buttons(browser, pages, tmp_path):
    browser.open(pages[table])
    browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    browser.call("Emulation.setEmulatedMedia", media="print")
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert browser.run(shown.format(".buttons")) == "none"
    assert browser.run(shown.format("nav")) == "none"
    assert browser.run(shown.format("figure")) != "none"
    browser.call("Emulation.setEmulatedMedia", media="")
