"""What cannot be measured is refused beside the button Run, in words; sizes with a suffix are understood."""

from __future__ import annotations

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from open_page import open_page
from streamlit.testing.v1 import AppTest

import kernelviz.bench
from kernelviz import bench as use_cases
from kernelviz import formats
from kernelviz.bench import gallery
from kernelviz.cli import main
from kernelviz.core import BadField, DocumentError, RunRequest
from kernelviz.core.sizes import expand


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> rehearsed.RehearsedBench:
    made = rehearsed.RehearsedBench((samples.H200, samples.CPU))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    return made


def opened(**params: str) -> AppTest:
    test = open_page(params)
    assert not test.exception
    return test


def errors(test: AppTest) -> str:
    return " ".join(e.value for e in test.error).replace("\\", "")


def captions(test: AppTest) -> str:
    return " ".join(c.value for c in test.caption).replace("\\", "")


def test_a_size_that_cannot_fit_is_refused_before_it_runs(bench: rehearsed.RehearsedBench) -> None:
    """Two inputs and two sets of outputs of 4 TiB each."""
    test = opened(op="add", n="2^40", device="cuda:0")
    assert test.button(key="run").disabled
    assert "'n=2^40' cannot be used; measuring add fp32 takes 16.00 TiB of memory" in errors(test)
    assert "NVIDIA H200 has 139.70 GiB; choose smaller sizes" in errors(test)
    for device, memory in (("cuda:0", "139.70 GiB"), ("cpu", "32.00 GiB")):
        with pytest.raises(BadField, match=f"has {memory}"):
            bench.plan(RunRequest(op="add", sizes={"n": "2^40"}, device=device))
    assert main(["run", "add", "--size", "n=2^40"]) == 2


def test_a_sweep_of_which_a_part_fits_says_what_does_not() -> None:
    test = opened(op="add", n="2^20,2^40", device="cuda:0")
    assert not test.button(key="run").disabled
    assert (
        "1 of 2 sizes does not fit into the memory of the device (139.70 GiB): n = 1,099,511,627,776 needs 16.00 TiB."
        in captions(test)
    )
    assert "fit into the memory" not in captions(opened(op="add", n="2^20,2^21", device="cuda:0"))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("4k", [4096]), ("4K,1M", [4096, 2**20]), ("1k..4k", [1024, 2048, 4096]), ("1G", [2**30]), ("2k*3", [6144])],
)
def test_a_suffix_is_a_power_of_1024(text: str, sizes: list[int]) -> None:
    assert [one["n"] for one in expand(("n",), {"n": text})] == sizes
    assert expand(("m", "k"), {"m": "64k/k", "k": "4k"}) == [{"m": 16, "k": 4096}]


@pytest.mark.parametrize("text", ["4kk", "4m", "k4", "4.5k", "4 k", "1T"])
def test_what_is_no_suffix_is_refused(text: str) -> None:
    with pytest.raises(BadField):
        expand(("n",), {"n": text})


def test_the_form_shows_the_number_of_a_size_with_a_suffix() -> None:
    test = opened(op="add", n="4k,1M", device="cuda:0")
    assert test.text_input(key="size_add_n").value == "4k,1M"
    assert test.segmented_control(key="sizes_from").value == "values"
    assert "n = 4096,1048576" in captions(test)
    assert "n = 4096" not in captions(opened(op="add", n="4096", device="cuda:0"))


def test_the_boxes_of_the_sizes_have_those_of_the_preset_that_was_chosen_before() -> None:
    """After preset, then values, the browser showed five empty boxes of attention."""
    test = opened(op="causal_attention", device="cuda:0")
    test.segmented_control(key="sizes_from").set_value("preset").run()
    test.segmented_control(key="sizes_from").set_value("values").run()
    boxes = {box.key: (box.value, box.proto.default) for box in test.text_input if str(box.key).startswith("size_")}
    assert boxes["size_causal_attention_s"] == ("1024", "1024"), "what a browser shows in a new box is the default"
    assert all(value == default != "" for value, default in boxes.values())


def test_a_form_without_a_variant_says_so() -> None:
    test = opened(op="add", device="cuda:0")
    test.button_group(key="variants").set_value([]).run()
    assert not test.exception
    assert test.button(key="run").disabled
    assert "No variant is chosen. Choose at least one above." in errors(test)


@pytest.mark.parametrize("op", ["varlen_attention", "add"])
def test_the_box_of_a_first_visit_says_what_is_wrong_with_the_form(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 12 query heads on 8 key heads, it said "Ready to run" and its button did nothing. `add` has a recorded run."""
    every = gallery.recorded_runs
    monkeypatch.setattr(
        gallery, "recorded_runs", lambda bench: tuple(r for r in every(bench) if r.run.op != "varlen_attention")
    )
    wrong = {"hq": "12", "hk": "8"} if op == "varlen_attention" else {"n": "2^40"}
    test = opened(op=op, device="cuda:0", **wrong)
    box = " ".join(m.value for m in test.main.markdown).replace("\\", "")
    assert test.button(key="first_run").disabled
    assert "Ready to run" not in box
    if op == "varlen_attention":
        remedy = "query heads must be a multiple of the 8 key heads (size hk)."
        assert f"Not ready to run: Size hq: '12' cannot be used; {remedy}" in box
        assert f"Q{remedy[1:]}" in captions(test), "below the field of hq"
        test.text_input(key="size_varlen_attention_hq").set_value("16").run()
        assert "Ready to run: varlen_attention in bf16" in " ".join(m.value for m in test.main.markdown).replace(
            "\\", ""
        )
        assert not test.button(key="first_run").disabled
    else:
        assert "Not ready to run: " in box
        assert "choose smaller sizes." in box


@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_called_empty(data: bytes) -> None:
    with pytest.raises(DocumentError, match=r"^the file is empty$"):
        formats.read(data)
