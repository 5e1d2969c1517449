"""What of a figure can be read."""

import matplotlib as mpl
import pytest


@pytest.fixture
def assert_readable(monkeypatch):
    """Assert that no text of a figure is cut off, and that none overlap."""
    draw = mpl.text.Text.draw

    def check(figure):
        found = {}  # texts that are really drawn, with their boxes in pixels

        def record(text, renderer):
            if text.get_visible() and text.get_text().strip():
                found[text] = (text.get_text(), mpl.text.Text.get_window_extent(text, renderer))
            draw(text, renderer)

        figure.canvas.draw()  # the first time, everything finds its place
        with monkeypatch.context() as patched:
            patched.setattr(mpl.text.Text, "draw", record)
            figure.canvas.draw()
        texts = list(found.values())
        assert texts
        for i, (text, box) in enumerate(texts):
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, f"{text!r} is cut off"
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, f"{text!r} is cut off"
            for other, against in texts[:i]:
                overlap = mpl.transforms.Bbox.intersection(box, against)
                apart = overlap is None or min(overlap.width, overlap.height) <= 1
                assert apart, f"{text!r} and {other!r} overlap"

    return check
