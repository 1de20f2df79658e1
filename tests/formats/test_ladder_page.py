"""The page of a ladder: one file that loads nothing, in which every text is text; and the same as Markdown."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sample_ladders as plant

from kernelviz.bench import Bench
from kernelviz.bench.ladder_changes import changes_of
from kernelviz.formats import ladder_page
from kernelviz.formats.browser import bundle
from kernelviz.formats.html import allowed
from kernelviz.metrics.ladder import Ladder
from kernelviz.metrics.ladder_changes import LadderChanges
from kernelviz.store import Store
from kernelviz.text.ladder_markdown import markdown

HOSTILE = "</script></style></pre><img src=x onerror=alert(1)>\"'&<b>`]($x$"


class Read(HTMLParser):
    """The elements of a page with their attributes, and its text outside of scripts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(Store.open(tmp_path_factory.mktemp("store")), ())


def changed(bench: Bench, ladder: Ladder) -> LadderChanges:
    return changes_of(bench, ladder, machine_code=False)


def test_the_page_reads_like_a_work_log(bench: Bench) -> None:
    ladder = plant.ladder()
    read = Read(ladder_page.page(ladder, changed(bench, ladder)))
    said = " ".join(" ".join(read.words).split())
    assert "Ladder of add fp32 n = 16,777,216" in said
    assert re.search(r"CUDA C\+\+: 3 rungs from 1\.\d+ to 3\.\d+ TB/s, 2\.\d+×", said)
    assert "the idea of cuda_vec16" in said
    assert "faster than cuda scalar." in said
    assert "✕ wrong result, no gain: it is wrong." in said
    assert (
        "1.50×, the source's kernel of this rung over its kernel of cuda scalar, on a GPU (example.org). a remark"
        in said
    )
    assert (
        "kernel vec16 in place of scalar in add.cu, 2 lines added and 2 removed; macros: TILE cuda_scalar → cuda_vec16."
        in said
    )
    assert "+__global__ void vec16(float4* x) {" in said
    assert "torch eager: " in said
    assert "Triton: no rung has a correct time in this run (triton block)" in said
    assert "kernelviz ladder add --measure --size n=16777216 --dtype fp32" in said
    assert len([tag for tag, a in read.tags if a.get("class") == "rung"]) == 4
    assert [tag for tag, _ in read.tags].count("svg") == 4


def test_it_loads_nothing_and_runs_only_its_own_scripts(bench: Bench) -> None:
    ladder = plant.ladder()
    page = ladder_page.page(ladder, changed(bench, ladder))
    read = Read(page)
    policy = next(a["content"] for tag, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    hashes = re.findall(r"'sha256-[^']+'", policy)
    assert hashes == [allowed(read.scripts[-1]), allowed(bundle.script().decode())]
    assert not [a for _, a in read.tags if "src" in a or "href" in a]
    assert len(page) < 1_000_000


def test_the_chart_is_in_the_file_and_its_points_name_the_rungs(bench: Bench) -> None:
    ladder = plant.ladder()
    read = Read(ladder_page.page(ladder, changed(bench, ladder)))
    charts = json.loads(gzip.decompress(b64decode(read.scripts[0])))
    assert list(charts) == ["chart-cuda"]
    keys = {key for trace in charts["chart-cuda"]["figure"]["data"] for key in trace.get("customdata", ())}
    assert keys == {f"rung-cuda-{number}" for number in (1, 2, 3, 4)}
    ids = {a.get("id") for _, a in read.tags}
    assert keys <= ids


def test_every_text_is_shown_as_text(bench: Bench) -> None:
    plain, hostile = plant.ladder(), plant.ladder(HOSTILE)
    page = ladder_page.page(hostile, changed(bench, hostile))
    read, usual = Read(page), Read(ladder_page.page(plain, changed(bench, plain)))
    assert HOSTILE.encode() not in page
    assert [tag for tag, _ in read.tags if tag in ("img", "script", "b")] == [
        tag for tag, _ in usual.tags if tag in ("img", "script", "b")
    ]
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert "".join(read.words).count(HOSTILE) > 10


def test_markdown_keeps_texts_and_code_apart(bench: Bench) -> None:
    hostile = plant.ladder(HOSTILE)
    text = markdown(hostile, changed(bench, hostile))
    outside, fence = [], ""
    for line in text.splitlines():
        if line.startswith("```"):
            fence = "" if fence and line.startswith(fence) else fence or line.removesuffix("diff")
        elif not fence:
            outside.append(line)
    assert fence == ""
    assert not any(
        re.search(r"(?<!\\)[<`$\[]", re.sub(r"`ladder`|`cuda_\w+`|`triton_\w+`", "", line)) for line in outside
    )
    assert any(r"\<img" in line for line in outside)


def test_markdown_reads_like_a_work_log(bench: Bench) -> None:
    ladder = plant.ladder()
    text = markdown(ladder, changed(bench, ladder))
    assert text.startswith("# Ladder of add fp32 n = 16,777,216\n\nMeasured on NVIDIA H200, 2026-11-21, run `ladder`.")
    assert "| 2 | `cuda_vec16` |" in text
    assert "### 2. cuda vec16\n\nthe idea of cuda_vec16\n\n- Reached: " in text
    assert "```diff\n--- scalar\n+++ vec16\n" in text
    assert "✕ wrong result, no gain" in text
    without = markdown(ladder, changed(bench, ladder), diffs=False)
    assert "```" not in without


def test_a_ladder_without_a_correct_time_is_a_page_that_says_so(bench: Bench, tmp_path: Path) -> None:
    ladder = plant.ladder()
    failed = plant.ladder_of(
        plant.samples.run([plant.samples.failed(plant.PROBLEM, "cuda_scalar", "crash")], op="add", sizes=[])
    )
    assert "No rung has a correct time yet." in ladder_page.page(failed, LadderChanges()).decode()
    assert "No rung has a correct time yet." in markdown(failed, LadderChanges())
    assert "No rung has a correct time" in ladder_page.page(ladder, LadderChanges(), backend="gluon").decode()
