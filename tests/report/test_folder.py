"""The page again from a folder of results, with and without the facts it was drawn from."""

import json

import numpy as np
import pytest

from perpend.exceptions import InputError, ModelFileError
from perpend.report import FACTS, PAGE, report_from_folder, write_report
from report.cases import cloud, image, table
from report.payloads import PAYLOADS


def written(folder, case):
    model, data = case()
    result = {"input": {"name": data.source, "columns": data.columns, "sha256": "0" * 64}}
    write_report(folder / PAGE, model, data, result=result, facts_path=folder / FACTS)
    return (folder / PAGE).read_bytes()


@pytest.mark.parametrize("case", [table, cloud, image])
def test_facts_alone_give_the_same_page_again(case, tmp_path):
    first = written(tmp_path, case)
    (tmp_path / PAGE).unlink()
    assert report_from_folder(tmp_path) == tmp_path / PAGE
    assert (tmp_path / PAGE).read_bytes() == first


def test_without_facts_the_model_and_the_labels_give_a_page(tmp_path):
    model, data = table()
    model.save(tmp_path / "model.npz")
    result = {"input": {"name": "data.csv", "columns": data.columns}, "timings": {"fit": 1.5}}
    (tmp_path / "result.json").write_text(json.dumps(result))
    lines = [
        f"{row},{distance!r},{int(label == 1)}"
        for row, (distance, label) in enumerate(
            zip((-model.score_samples(data.X)).tolist(), model.labels_, strict=True)
        )
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["row,distance,inlier", *lines]))
    text = report_from_folder(tmp_path).read_text(encoding="utf-8")
    assert "rows lie near a 5-dimensional subspace in 8 columns" in text
    assert 'id="distances"' in text
    assert "The strongest outliers" in text
    assert "fit 1.50 s" in text
    assert "<i><bdi>h</bdi></i>" in text  # the equation has the names
    (tmp_path / "labels.csv").unlink()
    text = report_from_folder(tmp_path).read_text(encoding="utf-8")
    assert 'id="distances"' not in text
    other = tmp_path / "elsewhere.html"
    assert report_from_folder(tmp_path, data=data, path=other) == other
    assert 'id="view"' in other.read_text(encoding="utf-8")


def test_facts_of_an_earlier_version_give_way_to_the_model(tmp_path):
    (tmp_path / FACTS).write_text(json.dumps({"schema": 1, "title": "old"}))
    with pytest.raises(InputError, match="has schema 1"):
        report_from_folder(tmp_path)
    table().model.save(tmp_path / "model.npz")
    text = report_from_folder(tmp_path).read_text(encoding="utf-8")
    assert "rows lie near a 5-dimensional subspace in 8 columns" in text


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        report_from_folder(tmp_path / "none")
    with pytest.raises(InputError, match=r"neither report\.json nor model\.npz"):
        report_from_folder(tmp_path)


def test_a_damaged_model_is_refused(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"PK")
    with pytest.raises(ModelFileError):
        report_from_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_facts_that_are_no_facts_are_refused(content, tmp_path):
    (tmp_path / FACTS).write_bytes(content)
    with pytest.raises(InputError, match=r"report\.json"):
        report_from_folder(tmp_path)
    assert not (tmp_path / PAGE).exists()


@pytest.mark.slow
def test_facts_cut_or_changed_anywhere_never_end_in_another_error(tmp_path):
    written(tmp_path, table)
    (tmp_path / PAGE).unlink()
    facts = json.loads((tmp_path / FACTS).read_bytes())
    rng = np.random.default_rng(0)
    strange = [None, -1, 1e308, "x", [], {}, [[]], True, PAYLOADS[0], ["a", "b"]]
    for _ in range(300):
        changed = json.loads(json.dumps(facts))
        place = changed
        while True:
            key = (
                list(place)[rng.integers(len(place))]
                if isinstance(place, dict)
                else int(rng.integers(len(place)))
            )
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
                break
            place = inner
        place[key] = strange[rng.integers(len(strange))]
        (tmp_path / FACTS).write_text(json.dumps(changed))
        try:
            text = report_from_folder(tmp_path).read_text(encoding="utf-8")
        except InputError:
            continue
        assert "<script>window" not in text


def test_hostile_facts_cannot_reach_out_or_run(tmp_path):
    written(tmp_path, image)
    facts = json.loads((tmp_path / FACTS).read_bytes())
    facts["pictures"]["image"]["scene"] = "https://evil.example/x.png"
    (tmp_path / FACTS).write_text(json.dumps(facts))
    with pytest.raises(InputError, match="not a picture inside the page"):
        report_from_folder(tmp_path)
