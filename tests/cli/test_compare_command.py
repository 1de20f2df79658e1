"""`kernelviz compare` and `kernelviz.compare`: the same use case as the page, with an exit code for CI."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import compared_runs as runs
import msgspec
import pytest
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.errors import BadField
from kernelviz.formats import encode
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    made.history.add(runs.before())
    yield made
    made.close()


def test_the_worst_comes_first_and_something_slower_is_exit_code_3(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.history.add(runs.after({"triton_persistent": 1.05, "triton_block_per_row": 0.9}, device={"driver": "600"}))
    assert main(["compare", "before", "after"]) == 3
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert "≠ driver: 580.159 in A, 600 in B" in lines
    first = next(line for line in lines if "▼ 1." in line)
    assert first.startswith("triton persistent")
    assert "1.05" in first or "1.049" in first
    assert printed.out.index("▼ 1.") < printed.out.index("▲ 1.")
    assert any(line.startswith("6 slower, ") and ", 6 faster" in line for line in lines)
    assert "no case ran identical code in both" in printed.out
    assert printed.err == "failed: 6 slower\n"
    # Why, for each of them, and for each faster one: the source has changed, and the driver.
    assert "\n6 cases of B are slower. The likeliest reasons: kernels (6)." in printed.out
    assert "\n6 cases of B are faster. The likeliest reasons: kernels (6)." in printed.out
    why = [line for line in lines if "the source of the variant has changed; driver 580.159 → 600" in line]
    assert len(why) == 12
    assert all("unknown: grid and fast paths, spills" in line for line in why)
    main(["compare", "before", "after", "--json"])
    printed_json = json.loads(capsys.readouterr().out)
    slower, faster = printed_json["slower"], printed_json["faster"]
    assert {one["variant_b"] for one in slower} == {"triton_persistent"}
    assert slower[0]["reasons"] == ["the source of the variant has changed", "driver 580.159 → 600"]
    assert (slower[0]["topics"]["spills"]["status"], slower[0]["topics"]["clock"]["status"]) == ("unknown", "same")
    assert {one["variant_b"] for one in faster} == {"triton_block_per_row"}
    assert [one["ratio"] for one in faster] == [
        p.ratio and p.ratio.estimate for p in (one.pair for one in kv.compare("before", "after").speedups())
    ]
    assert faster[0]["ratio"] == min(one["ratio"] for one in faster)
    assert [one.pair.key for one in kv.compare("before", "after").slowdowns()] == [
        f"{one['problem']} | {one['variant_a']}" for one in slower
    ]


def test_a_large_change_has_the_digits_that_its_interval_leaves(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.history.add(runs.after({"triton_persistent": 58.004}))
    assert main(["compare", "before", "after"]) == 3
    factors = re.findall(r"▼ ([\d.,]+)× slower \(([\d.,]+)–([\d.,]+)\)", capsys.readouterr().out)
    assert len(factors) == 6
    for factor, low, high in factors:
        assert 57 < float(low) <= float(factor) <= float(high) < 59
        digits = {len(text.partition(".")[2]) for text in (factor, low, high)}
        assert digits <= {1, 2}, "the intervals are between 0.01 and 1 wide"
        assert len(digits) == 1


def test_nothing_slower_is_exit_code_0(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.history.add(runs.after({"triton_block_per_row": 0.9}))
    assert main(["compare", "before", "after"]) == 0
    printed = capsys.readouterr()
    assert "0 slower, 0 unclear, 0 same, 6 faster, 12 identical." in printed.out
    assert "with identical code" in printed.out
    assert printed.err == ""


def test_a_limit_is_beyond_the_whole_interval(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.history.add(runs.after({"triton_persistent": 1.03}))
    assert main(["compare", "before", "after"]) == 3
    assert main(["compare", "before", "after", "--fail-slower-than", "2%"]) == 3
    assert "failed: 6 slower by more than 2 %" in capsys.readouterr().err
    assert main(["compare", "before", "after", "--fail-slower-than", "3 %"]) == 0
    for wrong in ("0.02", "2", "-1%", "nan%", "2%x", ""):
        assert main(["compare", "before", "after", f"--fail-slower-than={wrong}"]) == 2
        assert "write a percentage, as 2%" in capsys.readouterr().err


def test_what_was_right_and_is_wrong_now_fails_too(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.history.add(runs.after({"triton_persistent": 0.9}, wrong="triton_persistent"))
    assert main(["compare", "before", "after", "--fail-slower-than", "50%"]) == 3
    printed = capsys.readouterr()
    assert "failed: 1 without a correct time in B" in printed.err
    assert "✕ not comparable: B has no correct time (wrong result)" in printed.out


def test_files_variants_and_warm_times(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new run.json"
    file.write_bytes(encode(runs.after({"triton_persistent": 1.05})))
    chosen = ["--variant-a", "torch_eager", "--variant-b", "triton_persistent", "--l2", "warm"]
    assert main(["compare", "before", str(file), *chosen, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["a"]["variant"], told["b"]["variant"], told["l2"]) == ("torch_eager", "triton_persistent", "warm")
    assert [c["verdict"] for c in told["cases"]] == ["faster"] * 6
    assert told["failing"] == []
    frame = kv.compare("before", file, variant_a="torch_eager", variant_b="triton_persistent", l2="warm").to_frame()
    assert list(frame["ratio"]) == [c["ratio"] for c in told["cases"]]


def test_what_is_wrong_is_named(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text('{"schema": "kernelviz/99"}')
    for asked, said in (
        (["before", "never"], "no run 'never' here"),
        (["before", str(tmp_path / "bad.json")], "newer kernelviz"),
        (["before", "none.json"], "there is no such file"),
        (["before", "before"], "it is run A itself"),
        (["before", "h200-add", "--l2", "hot"], "no l2 'hot'"),
        (["before", "h200-add", "--variant-a", "torch_eagr"], "did you mean 'torch_eager'"),
    ):
        assert main(["compare", *asked]) == 2
        assert said in capsys.readouterr().err


def test_comparing_nothing_is_no_pass(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--fail-slower-than", "2%"], ["--json"]):
        assert main(["compare", "before", "h200-add", *options]) == 2
        printed = capsys.readouterr()
        said = "nothing was compared: A and B have no case in common: the ops differ (rmsnorm in A, add in B)."
        assert " ".join(printed.err.split()) == said
    assert json.loads(printed.out)["cases"] == []


def test_a_gate_says_what_it_did_not_compare(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    whole = runs.after({})
    some = [r for r in whole.results if r.variant != "triton_persistent"]
    bench.history.add(msgspec.structs.replace(whole, results=tuple(some)))
    assert main(["compare", "before", "after"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["compare", "before", "after", "--fail-slower-than", "2%"]) == 0
    assert capsys.readouterr().err == "not compared: 6 cases only in A, which B did not measure\n"


def test_a_file_that_is_none_is_named(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, pipe = tmp_path / "bad.json", tmp_path / "pipe"
    bad.write_text("[1")
    os.mkfifo(pipe)
    for command in ("compare", "ladders"):
        for source, said in (
            (bad, f"{bad}: its format is not supported"),
            (tmp_path, "it is a folder"),
            (pipe, "it is no plain file"),
        ):
            assert main([command, "before", str(source)]) == 2
            assert said in capsys.readouterr().err
    with pytest.raises(BadField, match="it is a folder"):
        kv.load(tmp_path)


def test_in_python(bench: Bench) -> None:
    a, b = runs.before(), runs.after({"triton_persistent": 1.05})
    found = kv.compare(a, b)
    assert [p.kind for p in found.pairs[:6]] == ["slower"] * 6
    assert len(found.slower_than(0.02)) == 6
    assert found.record["summary"]["slower"] == 6
    assert list(found.to_frame()["verdict"]) == [p.kind for p in found.pairs]
    assert "6 slower" in repr(found)
    assert kv.plots.ratio_by_case(found).data
    with pytest.raises(BadField):
        kv.compare(a, a)
