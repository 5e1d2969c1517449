"""The page: what it says about every kind of fit, and that it is well formed and accessible."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

from perpend.exceptions import InputError
from perpend.formats._dataset import Labelled
from perpend.report import write_report
from perpend.report._facts import gather
from perpend.report._page import page
from report.cases import (
    CASES,
    cloud,
    dataset,
    fitted,
    flat,
    given,
    hopeless,
    image,
    point,
    table,
    unsure,
)
from report.payloads import PAYLOADS
from report.reading import evidence_rows, tiles, verdict

VOID = {"br", "img", "input", "link", "meta"}


class Outline(HTMLParser):
    """Everything that tests ask about a page; fails where tags do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len({key for key, _ in attrs}) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.text[tag] = self.text.get(tag, "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(params=CASES, ids=lambda case: case.__name__)
def facts(request):
    model, data = request.param()
    return gather(model, data)


def test_a_page_is_well_formed_and_its_ids_are_unique(facts):
    outline = Outline(page(facts))
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert outline.text["main"].count("None") <= outline.text["main"].count("=None") + 1
    assert not re.search(r"\bnan\b|\binf\b", outline.text["main"])


def test_labels_and_links_lead_somewhere(facts):
    outline = Outline(page(facts))
    ids = {attributes["id"] for _, attributes in outline.tags if "id" in attributes}
    for _, attributes in outline.tags:
        for key in ("aria-labelledby", "aria-describedby"):
            assert key not in attributes or set(attributes[key].split()) <= ids
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_pictures_have_descriptions_and_tables_captions_and_scopes(facts):
    outline = Outline(page(facts))
    for attributes in outline.all("img"):
        assert len(attributes["alt"]) > 20
    for name, attributes in outline.tags:
        if attributes.get("role") == "img" and name in ("svg", "canvas"):
            assert attributes.get("aria-labelledby") or len(attributes["aria-label"]) > 20
    assert len(outline.all("caption")) == len(outline.all("table"))
    assert all(attributes["scope"] in ("row", "col") for attributes in outline.all("th"))
    assert outline.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in outline.all(
        "meta"
    )
    headings = [int(name[1]) for name, _ in outline.tags if re.fullmatch("h[1-6]", name)]
    assert headings[0] == 1
    assert max(np.diff(headings)) <= 1


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(facts):
    text = page(facts)
    policy = next(meta["content"] for meta in Outline(text).all("meta") if "http-equiv" in meta)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for key, pattern in (
        ("style-src", r"<style>(.*?)</style>"),
        ("script-src", r"<script>(.*?)</script>"),
    ):
        (content,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[key] == f"'sha256-{digest}'"
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


def test_facts_are_plain_json_and_draw_the_same_page_again(facts):
    again = json.loads(json.dumps(facts, allow_nan=False))
    assert page(again) == page(facts)


def test_the_verdict_says_how_many_rows_are_where():
    facts = gather(*table())
    outliers = facts["estimate"]["outliers"]
    assert abs(outliers - 151) <= 3
    assert verdict(facts) == (
        f"{350 - outliers} of 350 rows lie near a 5-dimensional subspace in 8 columns; "
        f"the other {outliers} are outliers."
    )


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (hopeless, "No subspace was found: the 60 rows fill all 6 dimensions, as far as these"),
        (cloud, "points lie near a plane in 3 coordinates that misses the origin; the other"),
        (given, "150 of 250 rows lie on a 4-dimensional subspace in 6 columns; the other 100 are "
         "outliers. The codimension, 2, was given, not estimated."),
        (point, "the origin alone"),
        (flat, "rows lie near a line in 2 columns"),
    ],
)  # fmt: skip
def test_the_verdict_fits_the_case(case, said):
    assert said in verdict(gather(*case()))


def headings(text: str) -> str:
    """Return the verdict, headings, captions and heads of a page."""
    parts = re.findall(r"<(h\d|caption|figcaption|th|dt)\b[^>]*>(.*?)</\1>", text, re.DOTALL)
    parts += re.findall(r'<(p) class="verdict">(.*?)</p>', text)
    return re.sub(r"<[^>]*>", "", " | ".join(content for _, content in parts))


@pytest.mark.parametrize(
    ("case", "row", "column"),
    [(image, "pixels", "bands"), (cloud, "points", "coordinates"), (table, "rows", "columns")],
)
def test_rows_and_columns_are_called_what_they_are(case, row, column):
    text = page(gather(*case()))
    said = headings(text)
    assert f"Distances of the {row} to the subspace" in said
    assert re.search(rf"of \d+ {row} lie near a .* in \d {column}", said)
    others = {"rows", "columns", "pixels", "bands", "points", "coordinates"} - {row, column}
    for word in others:
        assert not re.search(rf"\b{word[:-1]}s?\b", said, re.IGNORECASE), word


def test_points_with_more_than_a_place_have_columns():
    X = np.c_[cloud().data.X, np.random.default_rng(0).random(500)]
    facts = gather(fitted(X, codimension=1, affine=True), dataset(X, "cloud"))
    assert "points lie near a 3-dimensional affine subspace in 4 columns" in verdict(facts)


def test_an_estimate_that_is_not_sure_says_why_and_what_would_help():
    for case in (hopeless, unsure):
        model, data = case()
        assert model.confidence_ < 0.95
        facts = gather(model, data)
        text = page(facts)
        assert "not sure" in verdict(facts) or "as far as these rows can tell" in verdict(facts)
        assert "Why it is not sure" in text
        assert 'class="help"' in text
        assert "Confidence high" not in text


def test_doubts_come_from_the_warnings_if_the_model_has_none():
    model, data = hopeless()
    facts = gather(model, data)
    said = f"codimension 0 is not sure (confidence 0.20): {model.doubts_[0]}."
    facts["estimate"]["doubts"], facts["warnings"] = [], [said]
    assert "Why it is not sure" in page(facts)


def test_evidence_comes_with_what_chance_gives():
    facts = gather(*table())
    found = {w.what: w for w in evidence_rows(facts)}
    evidence = facts["estimate"]["evidence"]
    rows = found["Different rows on the subspace"]
    assert (rows.found, rows.chance) == (str(evidence["rows_on_subspace"]), "5")
    assert rows.good
    assert found["How much better than no subspace"].good


def invoices(n=300, n_wrong=20):
    """A total, what it is made of, and a column that has nothing to do with it; some are wrong."""
    rng = np.random.default_rng(0)
    net, shipping, weight = rng.lognormal(5, 0.6, n), rng.uniform(3, 12, n), rng.gamma(3, 0.7, n)
    X = np.column_stack([net, 0.19 * net, shipping, 1.19 * net + shipping, weight]).round(2)
    X[:n_wrong, 3] *= rng.uniform(1.2, 2, n_wrong)
    return X


def test_the_step_that_decided_is_the_one_shown():
    facts = gather(*table())
    decays = {"inlier_gap": 270.0, "inlier_gap_runner_up": 60.0}
    whitened = {"whitened_inlier_gap": 1700.0, "whitened_inlier_gap_runner_up": 1.8}
    signs = []
    for evidence in (decays, {**decays, **whitened}):
        facts["estimate"]["evidence"] = evidence
        (step,) = [w for w in evidence_rows(facts) if w.what == "Step in the inliers' variance"]
        signs.append((step.good, step.found))
    assert [(good, found.replace("\u202f", "")) for good, found in signs] == [
        (False, "270 times"),
        (True, "1700 times"),
    ]


def test_no_column_is_blamed_that_would_need_an_unlikely_value():
    X = invoices()
    rows = gather(fitted(X), dataset(X))["outliers"]["rows"]
    wrong = [row for row in rows if row["row"] < 20]
    assert len(wrong) == 20
    # The total could be wrong, or what it is made of; the weight would have to be tons.
    assert all({b["column"] for b in row["blame"]} <= {0, 1, 2, 3} for row in wrong)
    assert all(3 in [b["column"] for b in row["blame"]] for row in wrong)


@pytest.mark.parametrize("offset", [0.0, 5e6])
def test_the_equation_holds_where_the_rows_are(offset):
    model, data = cloud()
    X = data.X + np.array([offset, -offset, 0.0])
    model = fitted(X, affine=True)
    text = page(gather(model, dataset(X, "cloud", columns=("x", "y", "z"))))
    line = re.search(r'class="equation">(.*?)</p>', text)[1]
    line = re.sub(r"<[^>]*>", "", line).replace("−", "-").replace("\u202f", "").replace(" ", "")
    powers = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    line = re.sub(r"×10([⁻⁰-⁹¹²³]+)", lambda m: "e" + m[1].translate(powers), line)
    left, right = line.split("=")
    terms = {name: float(v) for v, name in re.findall(r"([+-]?[\d.]+(?:e-?\d+)?)([xyz])", left)}
    normal = np.array([terms.get(name, 0.0) for name in "xyz"])
    miss = np.abs(X @ normal - float(right))[model.labels_ == 1]
    assert miss.max() < 1.2 * model.threshold_


@pytest.mark.parametrize("X", [np.full((30, 4), 3.0), 1e300 * invoices()], ids=["equal", "huge"])
def test_equal_and_huge_rows_have_a_page(X, tmp_path):
    assert write_report(tmp_path / "page.html", fitted(X), X).stat().st_size > 10_000


def test_strong_outliers_are_numbered_as_in_the_file_and_explained():
    model, data = table()
    few = dataset(data.X[:40], shape=(41,), positions=data.positions[:40])
    facts = gather(model, few)
    outliers = np.flatnonzero(model.labels_[:40] == -1)
    assert facts["outliers"]["total"] == len(outliers)
    rows = {row["row"]: row for row in facts["outliers"]["rows"]}
    assert set(rows) == set(data.positions[outliers])
    distances = [row["distance"] for row in facts["outliers"]["rows"]]
    assert distances == sorted(distances, reverse=True)
    # Row 7 stands at record 8. Only its column f is wrong, and the value that fits is known.
    blame = rows[8]["blame"][0]
    assert blame["column"] == 5
    assert blame["share"] > 0.95
    assert abs(blame["fits"] - (data.X[7, 5] - 2.0)) < 0.1
    fixed = data.X[7:8].copy()
    fixed[0, 5] = blame["fits"]
    np.testing.assert_allclose(
        model.distance(fixed) ** 2,
        (1 - blame["share"]) * model.distance(data.X[7:8]) ** 2,
        rtol=1e-6,
    )


def test_pixels_are_named_by_line_and_sample():
    model, data = image()
    facts = gather(model, data)
    pixels = {tuple(row["pixel"]) for row in facts["outliers"]["rows"]}
    assert {(line, sample) for line in (4, 5) for sample in (7, 8, 9)} <= pixels
    assert "Pixel (line, sample)" in page(facts)


def test_equations_hold_on_the_subspace():
    model, data = cloud()
    facts = gather(model, data)
    text = page(facts)
    equation = re.search(r'<p class="equation">(.*?)</p>', text)[1]
    plain = re.sub(r"<[^>]*>", "", equation).replace("−", "-")
    left, right = plain.split("=")
    terms = re.findall(r"([+-]?) ?([\d.]+) ([xyz])", left)
    values = [float(sign + value) for sign, value, _ in terms]
    assert [name for *_, name in terms] == ["x", "y", "z"]
    assert max(values, key=abs) > 0
    on_it = model.inverse_transform(model.transform(data.X[:5]))
    np.testing.assert_allclose(on_it @ values, float(right), atol=0.05)


def test_many_equations_are_cut_and_say_how_to_get_the_rest():
    X = np.random.default_rng(0).standard_normal((200, 2)) @ np.ones((2, 12))
    X += np.random.default_rng(1).standard_normal((200, 2)) @ np.random.default_rng(2).random(
        (2, 12)
    )
    text = page(gather(fitted(X), X))
    assert text.count('class="equation"') == 8
    assert "These are the 8 simplest" in text
    assert "perpend.equations(perpend.load(" in text


@pytest.mark.parametrize("title", [True, False])
def test_fifty_payloads_in_names_are_only_text(title):
    assert len(set(PAYLOADS)) == len(PAYLOADS) == 50
    harmless = [tags_of(tuple("abcdefgh"), title=title)]
    for begin in range(0, 50, 8):
        names = tuple((PAYLOADS * 2)[begin : begin + 8])
        # Not a tag and not an attribute more than on a page with harmless names.
        harmless.append(tags_of(names, title=title))
        assert harmless[-1] == harmless[0]


def tags_of(names: tuple[str, ...], *, title: bool) -> list[tuple[str, tuple[str, ...]]]:
    """Return the tags of a page that has these names wherever names can be."""
    model, data = table()
    result = {
        "warnings": names,
        "versions": dict(zip(names, names, strict=True)),
        "timings": {names[0]: 1.0},
        "input": {"name": names[1], "sha256": names[2]},
    }
    rows = dataset(data.X, columns=names, source=f"{names[0]}.csv")
    text = page(gather(model, rows, result=result, title=names[3] if title else None))
    outline = Outline(text)
    assert all(str(escape(name[:20])) in text for name in names)
    return [(tag, tuple(attributes)) for tag, attributes in outline.tags]


def test_names_that_no_file_can_hold_do_not_stop_the_page(tmp_path):
    model, data = table()
    names = ("\ud800", "\x00", "\u202egnp.exe", "\u2028", "a" * 10_000, "", "\n", "ж")
    path = write_report(
        tmp_path / "report.html", model, dataset(data.X, columns=names, source="\udcff.csv")
    )
    text = path.read_text(encoding="utf-8")
    Outline(text)
    assert "a" * 100 not in text
    assert "\u202e" not in text


def test_without_rows_there_is_a_page_that_says_what_is_missing():
    model, _ = table()
    facts = gather(model)
    assert facts["pictures"]["distances"] is None
    text = page(facts)
    assert "This report was made without the rows" in text
    assert verdict(facts) in html.unescape(text)


def test_given_labels_are_used_and_must_fit():
    model, data = table()
    n = len(data.X)
    labelled = Labelled(
        np.where(np.arange(n) < 10, -1, 1), np.arange(n)[::-1] + 1.0, np.ones(n) / 2
    )
    facts = gather(model, data, labelled=labelled)
    assert facts["estimate"]["outliers"] == 10
    assert facts["outliers"]["rows"][0]["row"] == 0
    with pytest.raises(InputError, match="349 labels, but the data has 350 rows"):
        gather(model, data, labelled=Labelled(*(values[1:] for values in labelled)))


def test_rows_of_another_shape_are_refused():
    with pytest.raises(InputError, match="fitted to 8 columns"):
        gather(table().model, np.ones((4, 3)))


def test_the_estimator_writes_a_page(tmp_path):
    model, data = table()
    model.report(tmp_path / "a.html", data.X, title="My rows")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "My rows" in Outline(text).text["h1"]
    assert list(tmp_path.iterdir()) == [tmp_path / "a.html"]  # no other file, no draft


def test_a_large_table_gives_a_small_page():
    X = np.random.default_rng(0).standard_normal((60_000, 3))
    X[:30_000, 2] = 0.001 * X[:30_000, 2]
    facts = gather(fitted(X), X)
    assert facts["pictures"]["cloud"]["shown"] <= 20_000
    assert len(page(facts)) < 400_000


def contrast(a: str, b: str) -> float:
    """WCAG's ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def test_colours_have_contrast_in_both_schemes():
    style = re.search(r"<style>(.*?)</style>", page(gather(*table())), re.DOTALL)[1]
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in style.split("@media")[:2]]
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for scheme in schemes:
        for ground in (scheme["ground"], scheme["panel"]):
            for name in ("text", "muted", "link", "high", "medium", "low"):
                assert contrast(scheme[name], ground) >= 4.5, (name, ground)
            for name in ("in", "out", "rest", "mark"):
                assert contrast(scheme[name], ground) >= 3, (name, ground)


def test_the_noise_is_said_as_a_whole_and_for_each_column():
    for case in (table, cloud):
        facts = gather(*case())
        whole, words = {name: rest for name, *rest in tiles(facts)}["Noise of inliers"]
        D = facts["data"]["n_columns"]
        noun = "columns" if case is table else "coordinates"
        each = re.match(rf"length over all {D} {noun}; about (\S+) in each; ", words)[1]
        assert float(whole) == pytest.approx(np.sqrt(D) * float(each), rel=0.05)
        assert words.endswith("relative to their length" if case is table else "the data's units")
    facts["estimate"]["noise"] = 0.0
    assert ("Noise of inliers", "none", f"over all {noun}, in the data's units") in tiles(facts)


def test_descents_that_disagree_do_not_speak_against_a_sure_estimate():
    facts = gather(*table())
    assert facts["estimate"]["sure"]
    facts["estimate"]["evidence"] |= {"directions_rank": facts["estimate"]["codimension"] + 1}
    name = "Independent directions among the descents"

    def descents():
        (found,) = [row for row in evidence_rows(facts) if row[0] == name]
        return found

    assert descents()[-1] is None
    assert "two other methods" in descents()[3]
    facts["estimate"]["sure"] = False
    assert descents()[-1] is False


def test_without_a_subspace_the_next_step_finds_rows_that_are_far_out():
    X = np.random.default_rng(0).standard_normal((60, 6))
    assert "--outliers both" in page(gather(fitted(X, codimension="auto")))
    assert "--outliers both" not in page(gather(fitted(X, codimension="auto", outliers="both")))


@pytest.mark.parametrize(
    ("doubt", "advised"),
    [
        ("it may be a cloud (less noise would help, more rows would not)", False),
        ("40 rows are weak evidence (more rows would help)", True),
    ],
)
def test_more_rows_are_advised_only_if_they_help(doubt, advised):
    facts = gather(fitted(np.random.default_rng(0).standard_normal((40, 6)), codimension="auto"))
    facts["estimate"]["doubts"] = [doubt]
    assert ("would help more than any setting" in page(facts)) is advised
