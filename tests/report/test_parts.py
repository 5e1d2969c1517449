"""The small parts: what escapes, what is refused, pictures that other programs can read."""

import base64
import io
import json
import math

import numpy as np
import pytest

from perpend.formats._dataset import Counts
from perpend.report._charts import directions_chart
from perpend.report._distances import distance_facts
from perpend.report._facts import gather
from perpend.report._html import Html, data_script, join, tag
from perpend.report._next import next_steps
from perpend.report._png import data_uri, png
from perpend.report._rows import picture_facts
from perpend.report._sections import _intro
from perpend.report._svg import decade_ticks, left_margin, linear, ticks
from report.cases import cloud, dataset, fitted, flat, hopeless, image, table

# -- building markup -------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "<b>&", tag("i", "x")) == "<p>&lt;b&gt;&amp;<i>x</i></p>"
    assert tag("p", "x", title='"<') == '<p title="&quot;&lt;">x</p>'


def test_markup_that_was_changed_is_text_again():
    changed = tag("i", "x") + "<script>"
    assert not isinstance(changed, Html)
    assert join([changed]) == "&lt;i&gt;x&lt;/i&gt;&lt;script&gt;"


def test_attributes_of_markup_are_escaped_all_the_same():
    assert tag("p", title=Html('"><script>')) == '<p title="&quot;&gt;&lt;script&gt;"></p>'


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("p", {"onclick": "x"}),
        ("p", {"OnClick": "x"}),
        ("p", {"style": "x"}),
        ("p", {"a b": "x"}),
        ("a", {"href": "javascript:x"}),
        ("a", {"href": " javascript:x"}),
        ("a", {"href": "https://example.org"}),
        ("img", {"src": "x.png"}),
        ("img", {"src": "data:text/html,x"}),
        ("p onload=x", {}),
        ("", {}),
    ],
)
def test_what_could_run_or_reach_out_is_refused(name, attributes):
    with pytest.raises(ValueError, match=r"page|element"):
        tag(name, **attributes)


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028\u2029", "&lt;", "]]>"])
def test_data_comes_back_from_its_script_and_cannot_end_it(text):
    script = data_script("d", {"text": text})
    content = script.removeprefix('<script type="application/json" id="d">')
    content = content.removesuffix("</script>")
    assert json.loads(content) == {"text": text}
    assert content.isascii()
    assert not set(content) & set("<>&")


# -- pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_png_reads_back_elsewhere(channels):
    images = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    with images.open(io.BytesIO(png(pixels))) as picture:
        np.testing.assert_array_equal(np.asarray(picture).reshape(5, 7, channels), pixels)


def test_a_png_of_other_numbers_is_refused():
    with pytest.raises(ValueError, match="expected uint8"):
        png(np.zeros((2, 2)))


def opened(uri: str) -> np.ndarray:
    images = pytest.importorskip("PIL.Image")
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    with images.open(io.BytesIO(data)) as picture:
        return np.asarray(picture)


def test_the_mask_lies_over_the_outliers_of_the_scene():
    model, data = image()
    facts = picture_facts(model, data.X, model.labels_, data, list(data.columns))["image"]
    marked = np.zeros(180, bool)
    marked[data.positions] = model.labels_ == -1
    assert marked.any()
    np.testing.assert_array_equal(opened(facts["mask"])[..., 3] > 0, marked.reshape(12, 15))
    scene = opened(facts["scene"]).astype(float)
    assert scene.ravel()[:4].max() == 0  # no data
    brightness = data.X.mean(axis=1)
    middle = np.abs(brightness - np.median(brightness)) < np.std(brightness)
    agreement = np.corrcoef(scene.ravel()[data.positions][middle], brightness[middle])[0, 1]
    assert agreement > 0.99


def test_a_large_scene_is_made_smaller_and_keeps_single_outliers():
    model, data = image()
    X = np.tile(data.X[:1], (1700 * 30, 1))
    labels = np.ones(len(X), int)
    labels[30 * 1000 + 17] = -1
    scene = dataset(X, "image", shape=(1700, 30), counts=Counts())
    facts = picture_facts(model, X, labels, scene, list(data.columns))["image"]
    assert facts["factor"] == 3
    mask = opened(facts["mask"])[..., 3]
    assert mask.shape == (567, 10)
    assert np.argwhere(mask > 0).tolist() == [[1000 // 3, 17 // 3]]


def test_the_points_of_a_cloud_are_where_they_were():
    model, data = cloud()
    facts = picture_facts(model, data.X, model.labels_, data, ["x", "y", "z"])["cloud"]
    numbers = np.frombuffer(base64.b64decode(facts["points"]), "<u2").reshape(-1, 3)
    points = np.array(facts["low"]) + numbers / 65535 * facts["size"]
    inlier = np.frombuffer(base64.b64decode(facts["inlier"]), np.uint8) == 1
    assert len(points) == facts["shown"] > 0.98 * len(data.X)
    # Every point that is shown is one of the rows, with its label.
    nearest = np.argmin(((points[:, None] - data.X) ** 2).sum(-1), axis=1)
    np.testing.assert_allclose(points, data.X[nearest], atol=facts["size"] / 65535)
    np.testing.assert_array_equal(inlier, model.labels_[nearest] == 1)
    corners = np.array(facts["low"]) + np.array(facts["patch"]) * facts["size"]
    assert model.distance(corners).max() < 1e-3 * facts["size"]


# -- charts ----------------------------------------------------------------------------------------


def test_every_row_is_in_the_histogram_on_its_side_of_the_threshold():
    for case in (table, cloud, flat):
        model, data = case()
        facts = gather(model, data)["distances"]
        n = len(model.labels_)
        assert sum(facts["inliers"]) + sum(facts["outliers"]) == n
        assert sum(facts["outliers"]) == int((model.labels_ == -1).sum())
        edges = facts["low"] + facts["step"] * np.arange(len(facts["inliers"]) + 1)
        at = math.log10(model.threshold_)
        assert not any(np.array(facts["inliers"])[edges[:-1] > at])
        assert not any(np.array(facts["outliers"])[edges[1:] < at])
        assert np.all(np.diff(facts["probability"]) >= 0)


def test_the_model_expects_as_many_rows_as_there_are():
    model, data = table()
    facts = gather(model, data)["distances"]
    assert sum(facts["expected_outliers"]) == pytest.approx(sum(facts["outliers"]), rel=0.1)
    assert sum(facts["expected_inliers"]) == pytest.approx(sum(facts["inliers"]), rel=0.1)


def test_exact_rows_count_in_the_first_bin():
    X = np.random.default_rng(0).standard_normal((100, 4))
    X[:60, 3] = 0.0
    model = fitted(X)
    facts = gather(model, X)["distances"]
    assert facts["below"] == facts["inliers"][0] == 60
    assert distance_facts(model, X, None) is None


def test_ticks_are_round_and_inside():
    assert ticks(-1, 1) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert ticks(3, 3) == [3]
    assert decade_ticks(-9, 0) == [-8.0, -6.0, -4.0, -2.0, 0.0]
    assert [round(10**t, 3) for t in decade_ticks(-0.5, -0.2)] == [0.4, 0.5, 0.6]
    assert linear(1, 1, 5, 9)(1) == 5


def test_a_mark_counts_one_normal_and_ticks_leave_room_for_the_title():
    chart = str(directions_chart(gather(*cloud())["answer"]))
    assert ">1 normal<" in chart
    assert ">3 normals<" in str(directions_chart(gather(*table())["answer"]))
    assert left_margin([(0.0, "1"), (0.0, "10⁻¹²")]) - left_margin([(0.0, "1")]) == 4 * 7


# -- advice ----------------------------------------------------------------------------------------


def advice(model, data) -> str:
    return "\n".join(step.how for step in next_steps(gather(model, data)))


def test_advice_fits_the_case():
    assert "perpend apply model.npz NEW_FILE -o LABELLED" in advice(*table())
    assert "perpend compare" not in advice(*table())
    assert "perpend compare" in advice(*hopeless())
    assert "perpend apply" not in advice(*hopeless())
    far = hopeless().data + 50.0
    assert "affine=True" not in advice(*hopeless())
    assert "affine=True" in advice(hopeless().model, far)
    assert "affine=True" not in advice(*cloud())
    facts = gather(*table())
    facts["answer"]["evidence"]["outlier_misfit"] = 5.0
    facts["answer"]["converged"] = False
    how = "\n".join(step.how for step in next_steps(facts))
    assert "peel(X," in how
    assert "max_iter=" in how


def test_advice_keeps_the_settings_of_the_fit():
    facts = gather(fitted(hopeless().data + 50.0, codimension=2, normalize=False), None)
    facts["answer"] |= {"sure": False, "converged": False}
    facts["data"] |= {"name": "a.csv", "off_origin": 9.0}
    steps = [step.how for step in next_steps(facts)]
    assert "perpend fit a.csv -o RESULTS --codimension 2 --affine yes --no-normalize" in steps[0]
    assert "perpend compare a.csv --codimension 2 --affine no" in steps
    code = [line for how in steps for line in how.split("\n") if line.startswith("model = DPCP(")]
    assert len(code) >= 3
    assert all("codimension=2" in line and "normalize=False" in line for line in code)


def test_affine_is_not_advised_where_auto_chose_linear():
    facts = gather(hopeless().model, hopeless().data + 50.0)
    facts["answer"]["parameters"]["affine"] = "auto"
    how = "\n".join(step.how for step in next_steps(facts))
    assert "affine=True" not in how
    assert "--affine yes" not in how
    assert 'affine="auto", random_state=1' in how
    assert "perpend compare YOUR_FILE --affine auto" in how


def test_peeling_is_advised_where_it_can_help():
    def how(case, **changes):
        facts = gather(*case)
        facts["answer"]["evidence"]["outlier_misfit"] = 5.0
        facts["answer"] |= changes
        return "\n".join(step.how for step in next_steps(facts))

    assert "peel(rows," in how(cloud())  # affine: by a column of ones
    assert "np.c_[X, np.ones(len(X))]" in how(cloud())
    assert "peel(" not in how(table(), sure=True, outliers=25)
    assert "peel(" in how(table(), sure=False, outliers=25)


def test_a_sum_of_two_is_advised_to_be_peeled():
    facts = gather(*table())
    facts["answer"]["evidence"]["rows_on_smaller"] = 90
    step = next(step for step in next_steps(facts) if "sum of two" in step.why)
    assert step.why.startswith("90 rows lie on a smaller subspace")
    assert "peel(X," in step.how


def test_the_larger_subspace_that_all_rows_lie_on_is_advised():
    facts = gather(*table())
    facts["answer"]["evidence"]["exact_codimension"] = 4
    step = next(step for step in next_steps(facts) if "larger subspace" in step.why)
    assert step.why.startswith("All rows lie exactly")
    assert "--codimension 4" in step.how
    assert "codimension=4" in step.how


def test_names_in_commands_are_quoted():
    model, data = hopeless()
    facts = gather(model, data)
    facts["data"]["name"] = "a b; rm -rf x"
    assert any("perpend compare 'a b; rm -rf x'" in step.how for step in next_steps(facts))


def test_a_data_uri_says_that_it_is_a_png():
    assert data_uri(np.zeros((1, 1), np.uint8)).startswith("data:image/png;base64,iVBOR")


def test_witnesses_that_were_not_asked_are_not_named():
    facts = gather(*table())
    facts["answer"]["sure"] = True
    assert "the descents, which only see directions" in str(_intro(facts))
    facts["answer"]["evidence"].pop("directions_rank")
    assert "descents" not in str(_intro(facts))
