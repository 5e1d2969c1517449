"""The small parts: what escapes, what is refused, pictures that other programs can read."""

import base64
import io
import json
import re

import numpy as np
import pytest

from perpend.formats._dataset import Counts, Labelled
from perpend.report._facts import gather
from perpend.report._page import page
from perpend.report._png import png
from perpend.report._svg import decade_ticks, ticks
from report.cases import cloud, dataset, fitted, flat, hopeless, image, table
from report.reading import next_steps

# -- what comes from the data stays text ---------------------------------------------------------


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028\u2029", "&lt;", "]]>"])
def test_data_comes_back_from_its_script_and_cannot_end_it(text):
    facts = gather(*cloud())
    facts["pictures"]["cloud"]["names"][0] = text
    (content,) = re.findall(r'id="report-data">(.*?)</script>', page(facts), re.DOTALL)
    assert json.loads(content)["cloud"]["names"][0] == text.replace("\u2028\u2029", 2 * "\ufffd")
    assert content.isascii()
    assert not set(content) & set("<>&")


def test_words_of_a_stored_picture_are_text_and_its_colours_are_known():
    facts = gather(*table())
    picture = facts["pictures"]["view"]
    picture["x"]["label"] = picture["layers"][0]["name"] = "<script>window.pwned=1</script>"
    assert "<script>window" not in page(facts)
    picture["layers"][0]["color"] = '"><script>'
    with pytest.raises(KeyError):
        page(facts)


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
    facts = gather(model, data)["pictures"]["image"]
    marked = np.zeros(180, bool)
    marked[data.positions] = model.labels_ == -1
    assert marked.any()
    np.testing.assert_array_equal(opened(facts["mask"])[..., 3] > 0, marked.reshape(12, 15))
    scene = opened(facts["scene"]).reshape(180, 3).astype(float)
    assert np.ptp(scene[:4]) == 0  # no data is grey
    assert facts["bands"] == ["650 nm", "550 nm", "450 nm"]
    for channel, band in enumerate((5, 3, 1)):
        values, shown = data.X[:, band], scene[data.positions, channel]
        middle = (shown > 0) & (shown < 255)
        assert np.corrcoef(shown[middle], values[middle])[0, 1] > 0.999


def test_a_large_scene_is_made_smaller_and_keeps_single_outliers():
    model, data = image()
    X = np.tile(data.X[:1], (1700 * 30, 1))
    labels = np.ones(len(X), int)
    labels[30 * 1000 + 17] = -1
    scene = dataset(X, "image", shape=(1700, 30), counts=Counts())
    labelled = Labelled(labels, np.ones(len(X)), np.full(len(X), 0.5))
    facts = gather(model, scene, labelled=labelled)["pictures"]["image"]
    assert facts["factor"] == 3
    mask = opened(facts["mask"])[..., 3]
    assert mask.shape == (567, 10)
    assert np.argwhere(mask > 0).tolist() == [[1000 // 3, 17 // 3]]


def test_the_distances_of_a_scene_are_a_heat_map():
    model, data = image()
    distance = -model.score_samples(data.X)
    labelled = Labelled(model.labels_, distance, np.full(len(distance), 0.5))
    facts = gather(model, data, labelled=labelled)["pictures"]["image"]
    heat = opened(facts["heat"]).reshape(180, 3)[data.positions].astype(int).sum(axis=1)
    assert np.argmax(heat) == np.argmax(distance)
    assert np.all(
        np.diff(heat[np.argsort(distance)]) >= -2
    )  # brighter is farther, but for rounding
    assert facts["heat_ends"][1] == distance.max()
    assert opened(facts["heat_bar"]).shape == (1, 256, 3)


def test_the_points_of_a_cloud_are_where_they_were():
    model, data = cloud()
    facts = gather(model, data)["pictures"]["cloud"]
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


def layers(picture: dict, kind: str) -> list[dict]:
    return [layer for layer in picture["layers"] if layer["kind"] == kind]


def test_every_row_is_in_the_histogram_on_its_side_of_the_threshold():
    for case in (table, cloud, flat):
        model, data = case()
        near, far = layers(gather(model, data)["pictures"]["distances"], "Bars")
        assert (near["color"], far["color"]) == ("in", "out")
        n_far = int((model.labels_ == -1).sum())
        assert sum(near["heights"]) + sum(far["heights"]) == len(model.labels_)
        assert abs(sum(far["heights"]) - n_far) <= 1  # one may be in the threshold's own bin
        assert near["borders"][-2] <= model.threshold_ <= near["borders"][-1] * 1.0001
        assert near["borders"][-1] == far["borders"][0]


def test_the_model_on_the_page_is_that_of_the_fit():
    model, data = table()
    picture = gather(model, data)["pictures"]["distances"]
    near, far = layers(picture, "Bars")
    for bars, line, n in zip(
        (near, far),
        layers(picture, "Line"),
        (model._distance_record["n_inliers"], model._distance_record["n_outliers"]),
        strict=True,
    ):
        width = np.median(np.diff(np.log(bars["borders"])))
        expected = np.trapezoid(line["y"], np.log(line["x"])) / width
        assert expected == pytest.approx(n, rel=0.02)
        assert expected == pytest.approx(sum(bars["heights"]), rel=0.1)


def test_exact_rows_count_in_the_first_bar():
    X = np.random.default_rng(0).standard_normal((100, 4))
    X[:60, 3] = 0.0
    facts = gather(fitted(X), X)
    assert layers(facts["pictures"]["distances"], "Bars")[0]["heights"][0] == 60
    assert "60 rows lie on it up to rounding" in page(facts)


def test_ticks_are_round_and_inside():
    assert ticks(-1, 1) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert ticks(3, 3) == [3]
    assert decade_ticks(-9, 0) == [-8.0, -6.0, -4.0, -2.0, 0.0]
    assert [round(10**t, 3) for t in decade_ticks(-0.8, -0.2)] == [0.2, 0.5]


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
    facts["estimate"]["evidence"]["outlier_misfit"] = 5.0
    facts["estimate"]["converged"] = False
    how = "\n".join(step.how for step in next_steps(facts))
    assert "peel(X," in how
    assert "max_iter=" in how


def test_advice_keeps_the_settings_of_the_fit():
    facts = gather(fitted(hopeless().data + 50.0, codimension=2, normalize=False), None)
    facts["estimate"] |= {"sure": False, "converged": False}
    facts["data"] |= {"name": "a.csv", "off_origin": 9.0}
    steps = [step.how for step in next_steps(facts)]
    given = "--codimension 2 --affine {} --standardize none"
    assert f"perpend fit a.csv -o RESULTS {given.format('yes')} --no-normalize" in steps[0]
    assert f"perpend compare a.csv {given.format('no')}" in steps
    code = [line for how in steps for line in how.split("\n") if line.startswith("model = DPCP(")]
    assert len(code) >= 3
    assert all("codimension=2" in line and "normalize=False" in line for line in code)


def test_affine_is_not_advised_where_auto_chose_linear():
    facts = gather(hopeless().model, hopeless().data + 50.0)
    facts["estimate"]["parameters"]["affine"] = "auto"
    how = "\n".join(step.how for step in next_steps(facts))
    assert "affine=True" not in how
    assert "--affine yes" not in how
    assert 'affine="auto", random_state=1' in how
    assert "perpend compare YOUR_FILE --affine auto" in how


def test_peeling_is_advised_where_it_can_help():
    def how(case, **changes):
        facts = gather(*case)
        facts["estimate"]["evidence"]["outlier_misfit"] = 5.0
        facts["estimate"] |= changes
        return "\n".join(step.how for step in next_steps(facts))

    assert "peel(X, affine=True," in how(cloud())
    assert "peel(" not in how(table(), sure=True, outliers=25)
    assert "peel(" in how(table(), sure=False, outliers=25)


def test_a_sum_of_two_is_advised_to_be_peeled():
    facts = gather(*table())
    facts["estimate"]["evidence"]["rows_on_smaller"] = 90
    step = next(step for step in next_steps(facts) if "sum of two" in step.why)
    assert step.why.startswith("90 rows lie on a smaller subspace")
    assert "peel(X," in step.how


def test_the_larger_subspace_that_all_rows_lie_on_is_advised():
    facts = gather(*table())
    facts["estimate"]["evidence"]["exact_codimension"] = 4
    step = next(step for step in next_steps(facts) if "larger subspace" in step.why)
    assert step.why.startswith("All rows lie exactly")
    assert "--codimension 4" in step.how
    assert "codimension=4" in step.how


def test_names_in_commands_are_quoted():
    model, data = hopeless()
    facts = gather(model, data)
    facts["data"]["name"] = "a b; rm -rf x"
    assert any("perpend compare 'a b; rm -rf x'" in step.how for step in next_steps(facts))


def test_checks_that_were_not_made_are_not_named():
    facts = gather(*table())
    facts["estimate"]["sure"] = True
    assert "the directions of the descents" in page(facts)
    facts["estimate"]["evidence"].pop("directions_rank")
    assert "the directions of the descents" not in page(facts)
