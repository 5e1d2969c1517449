"""Several structures on the page: what is inside what, how to get the others, and the profile."""

import json

import pytest

from perpend.report._facts import gather
from perpend.report._next import next_steps
from perpend.report._page import page
from perpend.report._profile import profile_caption, profile_chart, profile_facts
from perpend.report._text import THIN
from perpend.report._words import inside
from report.cases import cloud, street, table


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
    assert "The scales that decided" in text
    assert 'id="profile"' in text
    assert "Directions that the descents found" not in text
    text = page(gather(*table()))
    assert 'id="profile"' not in text
    assert "Directions that the descents found" in text


def test_shades_are_runs_of_the_profile():
    model, _ = street()
    facts = profile_facts(model)
    assert len(facts["shades"]) == len(facts["codimensions"])
    assert {len(row) for row in facts["shades"]} == {len(facts["scales"])}
    contrast = model.profile_["contrast"]
    for c, row in zip(facts["codimensions"], facts["shades"], strict=True):
        (i,) = (model.profile_["codimensions"] == c).nonzero()[0]
        assert [shade != "0" for shade in row] == list(contrast[i] > 0)
    assert max(max(row) for row in facts["shades"]) == "5"
    chart = profile_chart(facts, "points")
    runs = sum(
        shade != "0" and (j == 0 or row[j - 1] != shade)
        for row in facts["shades"]
        for j, shade in enumerate(row)
    )
    assert chart.count("<rect") == runs
    assert chart.count("<circle") == len(model.structures_)
    assert "points" in chart


@pytest.mark.parametrize("case", [street, cloud])
def test_facts_of_the_profile_are_small_and_plain(case):
    facts = profile_facts(case().model)
    text = json.dumps(facts, allow_nan=False)
    assert len(text) < 10_000
    assert json.loads(text)["description"] == facts["description"]
    others = len(case().model.structures_) - 1
    assert ("Hollow" in profile_caption(facts)) is (others > 0)


def test_pages_of_earlier_versions_have_neither():
    facts = gather(*street())
    del facts["profile"], facts["answer"]["structures"]
    text = page(facts)
    assert "Directions that the descents found" in text
    assert "choose" not in text
