"""What the documentation shows of tensors and GPUs works; without a GPU, on the processor."""

from pathlib import Path

import pytest

from docs_code import blocks, run_page

torch = pytest.importorskip("torch", reason="the code on these pages needs torch")

DOCS = Path(__file__).parents[1] / "docs"
NEEDS = {
    page: {block.needs for block in blocks(page)} & {"torch", "cuda"}
    for folder in (".", "guide", "domains", "methods")
    for page in sorted((DOCS / folder).glob("*.md"))
}
PAGES = [page for page, needs in NEEDS.items() if needs]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_every_block_that_names_a_gpu_says_that_it_needs_one():
    assert "cuda" in set().union(*NEEDS.values())
    for page in NEEDS:
        for block in blocks(page):
            code = "\n".join(line.partition("#")[0] for line in block.code.splitlines())
            assert "cuda" not in code or block.needs == "cuda", f"{page.name}, line {block.line}"


def run(tmp_path, code):
    page = tmp_path / "page.md"
    page.write_text(f"% needs: cuda\n```python\n{code}\n```\n", encoding="utf-8")
    return run_page(page)


def test_code_for_a_gpu_is_run_where_there_is_none(tmp_path):
    code = 'import torch\nX = torch.ones(3, device="cuda")'
    assert run(tmp_path, code)["X"].device.type == DEVICE


def test_code_for_a_gpu_that_is_wrong_fails(tmp_path):
    code = 'from perpend import DPCP\nmodel = DPCP(device="cuda", no_such_parameter=1)'
    with pytest.raises(TypeError, match="no_such_parameter"):
        run(tmp_path, code)
