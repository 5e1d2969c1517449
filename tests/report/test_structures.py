"""Several structures on the page: what is inside what, how to get the others, and the profile."""

import json
import re

import numpy as np
import pytest

from perpend.plots import ProfileDisplay
from perpend.plots._words import THIN
from perpend.report._facts import gather
from perpend.report._page import page
from perpend.report._words import inside
from report.cases import cloud, street, table
from report.reading import next_steps


def said(facts):
    return inside(facts).replace(THIN, ",")


def test_it_says_what_is_inside_what():
    model, data = street()
    road, slab = model.structures_
    facts = gather(model, data)
    assert said(facts) == (
        f"It is a plane with noise {road['noise']:.2g} ({road['members']:,} points), "
        f"inside a slab of {slab['noise']:.2g}."
    )
    assert inside(facts) in page(facts)
    chosen = gather(model.choose(1), data)
    assert said(chosen) == (
        f"It is a plane with noise {slab['noise']:.2g} ({slab['members']:,} points); inside it a "
        f"plane with noise {road['noise']:.2g} ({road['members']:,} points)."
    )


def test_it_says_how_to_get_the_others():
    model, data = street()
    (step,) = [step for step in next_steps(gather(model, data)) if "choose" in step.how]
    assert 'perpend.load("model.npz")' in step.how
    assert "model.choose(1)  # a plane with noise" in step.how
    assert "choose(0)" not in step.how
    single = gather(*table())
    assert inside(single) is None
    assert not any("choose" in step.how for step in next_steps(single))


def test_the_profile_is_drawn_where_scales_decided():
    text = page(gather(*street()))
    assert "The codimension at each scale" in text
    assert 'id="profile"' in text
    assert "Directions that the descents found" not in text
    text = page(gather(*table()))
    assert 'id="profile"' not in text
    assert "Directions that the descents found" in text


def test_shades_are_runs_of_the_profile():
    model, data = street()
    facts = gather(model, data)
    (cells,) = [one for one in facts["pictures"]["profile"]["layers"] if one["kind"] == "Cells"]
    seen = model.profile_["contrast"][np.any(model.profile_["contrast"] > 0, axis=1)]
    np.testing.assert_array_equal(np.array(cells["levels"]) > 0, seen > 0)
    assert np.max(cells["levels"]) == 5
    chart = re.search(r'<svg id="profile".*?</svg>', page(facts), re.DOTALL)[0]
    runs = sum(
        level > 0 and (j == 0 or row[j - 1] != level)
        for row in cells["levels"]
        for j, level in enumerate(row)
    )
    assert chart.count("<rect") == runs
    assert chart.count('class="dots c-in"') == 1
    assert chart.count('class="dots c-muted"') == len(model.structures_) - 1
    assert "points" in chart


@pytest.mark.parametrize("case", [street, cloud])
def test_the_stored_profile_is_small_and_plain(case):
    model, data = case()
    facts = gather(model, data)
    text = json.dumps(facts["pictures"]["profile"], allow_nan=False)
    assert len(text) < 10_000
    assert json.loads(text)["description"].replace("points", "rows") == (
        ProfileDisplay.of(model).description
    )
    assert ("Hollow" in page(facts)) is (len(model.structures_) > 1)
