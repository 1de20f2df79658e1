"""The commands over a rehearsed bench: what they print, where, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
from sample_device import DeviceBench

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core.events import DeviceBusy, Event, RunEnded
from kernelviz.core.notices import Notice
from kernelviz.core.problem import QUICK
from kernelviz.core.result import Failure, Stage
from kernelviz.core.run import Roof
from kernelviz.formats import document
from kernelviz.ops import catalogue

BOTH = (samples.H200, samples.CPU)
Install = Callable[..., rehearsed.RehearsedBench]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    def installed(made: rehearsed.RehearsedBench | None = None) -> rehearsed.RehearsedBench:
        chosen = made or rehearsed.RehearsedBench(BOTH, roofs=samples.H200_ROOFS)
        monkeypatch.setattr(use_cases, "current", lambda: chosen)
        return chosen

    return installed


def test_a_run_prints_its_table_on_stdout_and_progress_on_stderr(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    assert main(["run", "rmsnorm", "--size", "m=4096", "--sweep", "n=2^10..2^12", "--dtype", "bf16"]) == 0
    printed = capsys.readouterr()
    rows = [line for line in printed.out.splitlines() if " ± " in line]
    cases = 3 * len(catalogue()["rmsnorm"].variants)
    assert len(rows) == cases
    persistent = next(r for r in rows if r.startswith("4,096  triton_persistent"))
    for words in (
        "17.44 µs ± 0.5 %",
        "3848 GB/s",
        "87.5 %",
        "▲ 1.549× faster (1.548–1.550)",
        "✓ correct, error 41 % of tolerance",
    ):
        assert words in persistent
    assert "m=2^12 on NVIDIA H200, cold L2" in printed.out
    assert "Best overall: triton_persistent (lowest geometric mean time, 3 sizes), 1.50× torch_eager" in printed.out
    assert printed.err.count(f"/{cases} rmsnorm bf16") == cases


def test_a_run_that_names_no_variants_leaves_out_those_that_are_wrong_on_purpose(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    add = catalogue()["add"]
    assert main(["run", "add", "--size", "n=4096", "--json"]) == 0
    measured = {r.variant for r in document.decode(capsys.readouterr().out).results}
    assert measured == {v.name for v in add.variants if not v.only_when_named}
    assert main(["run", "add", "--size", "n=4096", "--variants", "torch_eager,torch_aligned", "--json"]) == 0
    assert {r.variant for r in document.decode(capsys.readouterr().out).results} == {"torch_eager", "torch_aligned"}


def test_the_list_of_ops_says_which_variants_run_only_when_they_are_named(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    assert main(["ops", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    expected = {(op.name, v.name): v.only_when_named for op in catalogue().values() for v in op.variants}
    assert {(op["name"], v["name"]): v["only_when_named"] for op in listed for v in op["variants"]} == expected
    assert main(["ops"]) == 0
    assert "(only when named)" in " ".join(capsys.readouterr().out.split())


def test_the_list_of_ops_shows_published_gains_over_other_variants(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    assert main(["ops", "--json"]) == 0
    listed = {op["name"]: op["variants"] for op in json.loads(capsys.readouterr().out)}
    gains = {
        v.name: (op.name, v.published) for op in catalogue().values() for v in op.variants if v.published is not None
    }
    assert gains["cuda_tiled"][1].gpu == "RTX A6000"
    for name, (op, gain) in gains.items():
        assert next(v for v in listed[op] if v["name"] == name)["published"] == asdict(gain)
        assert gain.over in {v["name"] for v in listed[op]}
        assert gain.factor > 1
    assert main(["ops"]) == 0
    assert "published gain: 1.50× over cuda_naive" in " ".join(capsys.readouterr().out.split())


def test_json_is_one_document_and_nothing_else(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install()
    assert main(["run", "add", "--sweep", "n=2^10..2^12", "--variants", "torch_eager,triton_block", "--json"]) == 0
    printed = capsys.readouterr()
    run = document.decode(printed.out)
    assert [r.variant for r in run.results].count("triton_block") == 3
    assert [p.sizes["n"] for p in run.plan.problems] == [1024, 2048, 4096]
    assert printed.out.count("\n") == 1


def test_a_quick_run_is_what_live_mode_measures(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install()
    assert main(["run", "add", "--size", "n=4096", "--variants", "torch_eager", "--quick", "--json"]) == 0
    assert document.decode(capsys.readouterr().out).method == QUICK


def test_a_document_is_saved_beside_the_table(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install()
    target = tmp_path / "run.json"
    assert main(["run", "add", "--size", "n=1024", "--save", str(target)]) == 0
    assert len(document.decode(target.read_bytes()).results) == len(capsys.readouterr().out.split(" ± ")) - 1


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bench = install()
    assert main(["run", "add", "--size", "n=1024", "--save", str(tmp_path / "no" / "run.json")]) == 2
    assert bench.runs() == ()
    assert "--save" in capsys.readouterr().err


def test_some_failures_are_exit_1_with_their_reasons(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(rehearsed.RehearsedBench(BOTH, faults={"triton_block": ("compile", "ptxas fatal: too much shared memory")}))
    assert main(["run", "add", "--sweep", "n=2^10..2^11"]) == 1
    printed = capsys.readouterr()
    assert "✕ triton_block does not compile: ptxas fatal: too much shared memory (2 sizes)" in printed.out
    assert "Roofs are not calibrated" in printed.out
    assert "ptxas fatal" in printed.err


@pytest.mark.parametrize(
    ("stage", "code"), [("unavailable", 2), ("out_of_memory", 2), ("wrong", 1), ("crash", 1), ("timeout", 1)]
)
def test_nothing_that_could_be_tried_is_exit_2(
    install: Install, capsys: pytest.CaptureFixture[str], stage: Stage, code: int
) -> None:
    names = ("torch_eager", "triton_block")
    install(rehearsed.RehearsedBench(BOTH, faults=dict.fromkeys(names, (stage, "because"))))
    assert main(["run", "add", "--size", "n=1024", "--variants", ",".join(names)]) == code
    assert "No case has a correct time." in capsys.readouterr().out


def test_a_wrong_result_keeps_its_time_and_is_never_fastest(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(rehearsed.RehearsedBench(BOTH, faults={"triton_persistent": ("wrong", "y[0] is 1, should be 2")}))
    assert main(["run", "rmsnorm", "--size", "m=64", "--size", "n=64"]) == 1
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("triton_persistent"))
    assert "✕ wrong result" in line
    assert "✕ wrong: max error 812× tolerance" in line
    assert "Best overall: triton_persistent" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rmsnrom"], "no op 'rmsnrom'; did you mean 'rmsnorm'?"),
        (["run", "add", "--variants", "triton_blokc"], "did you mean 'triton_block'?"),
        (["run", "add", "--variants", " , "], "--variants: ' , ' cannot be used"),
        (["run", "add", "--dtype", "fp23"], "did you mean 'fp32'?"),
        (["run", "add", "--size", "n"], "write an axis and its sizes"),
        (["run", "add", "--size", "n=4", "--sweep", "n=2^10..2^12"], "axis 'n' is given twice"),
        (["run", "add", "--size", "k=4"], "no axis 'k'"),
        (["run", "add", "--size", "n=-1"], "size n"),
        (["run", "add", "--device", "cuda:9"], "did you mean 'cuda:0'?"),
        (["run", "add", "--data", "zeroes"], "did you mean 'zeros'?"),
        (["run", "add", "--figures", "cold,lop"], "did you mean 'loop'?"),
        (["run", "add", "--clock", "brust"], "did you mean 'burst'?"),
        (["run", "add", "--l2", "warn"], "did you mean 'warm'?"),
        (["run", "add", "--quick", "--energy"], "--quick"),
        (["run", "add", "--quick", "--clock", "sustained"], "--quick"),
        (["run", "add", "--quick", "--figures", "warm"], "--quick"),
        (["run", "add", "--load-seconds", "5"], "a burst has no steady load"),
        (["run", "add", "--clock", "sustained", "--load-seconds", "60"], "--load-seconds"),
        (["run", "add", "--budget-s", "0"], "--budget-s"),
        (["run", "add", "--budget-s", "much"], "--budget-s"),
        (["run", "add", "--frobnicate"], "--frobnicate"),
        (["run"], "Missing argument 'OP'"),
        (["runn"], "runn"),
        (["ops", "--device", "cuda:9"], "no device 'cuda:9'"),
        (["device", "--device", "tpu"], "no device 'tpu'"),
        (["launch", "add", "--variants", "torch_eager", "--sweep", "n=1,2"], "--sweep"),
        (
            ["launch", "add", "--variants", "torch_eager,triton_block", "--size", "n=64"],
            "name one variant and one size",
        ),
        (["launch", "add", "--variants", "triton_block", "--size", "n=64", "--device", "cpu"], "needs an NVIDIA GPU"),
        (["serve", "--port", "0"], "--port"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    install: Install, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    bench = install()
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.startswith("kernelviz: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert bench.runs() == ()


def test_no_command_shows_the_help(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: kernelviz" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.endswith("kernelviz 0.1.0\n")


class _Interrupted(rehearsed.RehearsedBench):
    """Ctrl-C arrives `times` times while the second event is awaited. Before that, the holder of the device is named."""

    def __init__(self, times: int) -> None:
        super().__init__(BOTH, case_s=30.0)
        self.left = times

    def follow(self, run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        yield after, DeviceBusy(holder="kernelviz serve of ada (process 7, since 09:00)")
        if self.left:
            self.left -= 1
            raise KeyboardInterrupt
        yield from super().follow(run_id, after, timeout_s)


def test_ctrl_c_cancels_and_keeps_what_is_there(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    bench = install(_Interrupted(1))
    assert main(["run", "add", "--size", "n=1024"]) == 1
    printed = capsys.readouterr()
    assert "waiting for the device: kernelviz serve of ada (process 7, since 09:00) holds it" in printed.err
    assert "cancelling after the current block" in printed.err
    (entry,) = bench.runs()
    assert entry.status == "cancelled"
    assert any(isinstance(r.outcome, Failure) for r in bench.load(entry.id).results)
    assert f"run {entry.id}" in printed.out


def test_a_second_ctrl_c_leaves_at_once(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    bench = install(_Interrupted(2))
    assert main(["run", "add", "--size", "n=1024"]) == 130
    (entry,) = bench.runs()
    assert any(isinstance(e, RunEnded) for _, e in bench.follow(entry.id)), "the bench was told to end it"


def test_ops_says_what_is_available_and_why_not(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    bench = install(rehearsed.RehearsedBench((samples.CPU,)))
    assert main(["ops", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [o["name"] for o in listed] == list(bench.ops())
    for op in listed:
        assert op.keys() == {"name", "family", "axes", "dtypes", "variants"}
        for variant in op["variants"]:
            assert variant.keys() == {
                "name",
                "backend",
                "summary",
                "available",
                "reason",
                "only_when_named",
                "published",
            }
            assert variant["available"] != bool(variant["reason"])
    assert main(["ops"]) == 0
    out = capsys.readouterr().out
    for op in listed:
        for variant in op["variants"]:
            assert variant["name"] in out
    assert "✕ needs an NVIDIA GPU" in out


def test_device_shows_roofs_and_where_the_database_is(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path))
    monkeypatch.delenv("KERNELVIZ_DATABASE_URL", raising=False)
    discovered = msgspec.structs.replace(samples.H200, last_level_cache_bytes=None)  # as NVML describes it
    install(rehearsed.RehearsedBench((discovered, samples.CPU)))
    assert main(["device"]) == 0
    out = capsys.readouterr().out
    assert "cuda:0: NVIDIA H200" in out
    assert "60.00 MiB (data sheet)" in out
    assert "not calibrated" in out
    assert "memory 4.800 TB/s" in out
    assert "NVIDIA H200 Tensor Core GPU (data sheet)" in out
    assert str(tmp_path / "kernelviz.db") in out
    assert main(["device", "--calibrate", "--device", "cpu", "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["database"] == str(tmp_path / "kernelviz.db")
    (device,) = told["devices"]
    assert (device["id"], device["data_sheet"]) == ("cpu", None)
    assert [r["name"] for r in device["roofs"]] == ["copy"]
    assert "copy: 22.00 GB/s" in printed.err


def test_a_refused_roof_is_named_with_the_reason(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    wide = Roof(
        name="matmul", precision="fp64", unit="tensor", rate_flop_per_s=1e9, low=1e8, high=1.262e10, measured_at="2027"
    )
    install(DeviceBench(newest_roofs=(wide,)))
    assert main(["device", "--device", "cuda:0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "refused roof matmul fp64: its 95 % interval, ±626 %, is wider than ±10 %" in out
    assert "read:write 2:1 at 126 MB" in out
    assert "up to 33 % of its bytes may stay in the cache" in out
    assert main(["device", "--device", "cuda:0", "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert [(r["roof"]["name"], r["reason"]) for r in device["refused_roofs"]] == [("matmul", "wide")]


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelviz.cli import device as devices
    from kernelviz.store import Store

    class Elsewhere:
        url = "postgresql://ada:secret@db/kernelviz"

        def close(self) -> None: ...

    monkeypatch.setattr(Store, "open", lambda: Elsewhere())
    assert devices.database() == "postgresql://ada:***@db/kernelviz"


class Hampered(rehearsed.RehearsedBench):
    """A machine that is found wanting."""

    def notices(self, device_id: str) -> tuple[Notice, ...]:
        return (Notice("driver_updated", {}, "mig"),)


def test_what_hampers_a_device_is_said_with_its_remedy(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(Hampered(BOTH))
    assert main(["device", "--device", "cuda:0"]) == 0
    assert "! the NVIDIA driver was updated while it was in use; restart this machine" in capsys.readouterr().out
    assert main(["device", "--device", "cuda:0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["devices"][0]["notices"][0]["subject"] == "mig"


def test_runs_are_listed_named_deleted_and_carried(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bench = install()
    source = tmp_path / "run.json"
    source.write_bytes(document.encode(samples.run(id="r1", title="before", shares={"torch_eager": 0.5})))
    assert main(["import", str(source)]) == 0
    assert capsys.readouterr().out == "r1\n"
    assert main(["runs", "rename", "r1", "after"]) == 0
    assert main(["runs", "note", "r1", "why"]) == 0
    assert main(["runs", "--search", "after", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["id"], found["title"], found["note"], found["done"]) == ("r1", "after", "why", 6)
    assert main(["runs", "delete", "r1", "--yes"]) == 0
    assert bench.history.count() == 0
    assert main(["runs", "restore", "r1"]) == 0
    target = tmp_path / "copy.json"
    assert main(["export", str(source), "-o", str(target)]) == 0
    assert target.read_bytes() == source.read_bytes()


def test_a_damaged_document_is_refused_and_the_others_are_taken_in(
    install: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bench = install()
    (tmp_path / "good.json").write_bytes(document.encode(samples.run(id="good")))
    (tmp_path / "bad.json").write_text('{"schema": "kernelviz/1"}')
    assert main(["import", str(tmp_path / "bad.json"), str(tmp_path / "good.json")]) == 1
    printed = capsys.readouterr()
    assert printed.out == "good\n"
    assert "bad.json: it is no whole document: Object missing required field `id`" in printed.err
    assert main(["import", str(tmp_path / "none.json")]) == 2
    assert bench.history.count() == 1


def test_device_names_the_share_of_the_issue_rate_of_a_measured_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instructions = Roof(
        name="mma", precision="bf16", unit="tensor", rate_flop_per_s=812e12, clock_hz=1.545e9,
        measured_at="2026-11-26T05:00:00+00:00",
    )  # fmt: skip
    bench = rehearsed.RehearsedBench((samples.H200,), roofs=(*samples.H200_ROOFS, instructions))
    monkeypatch.setattr(use_cases, "current", lambda: bench)
    assert main(["device"]) == 0
    printed = capsys.readouterr().out
    assert "tensor-core loop bf16: 812.0 TFLOP/s, 97.2 % of the issue rate at 1545 MHz" in printed
    assert main(["device", "--json"]) == 0
    shares = {r["name"]: r["issue_rate_fraction"] for r in json.loads(capsys.readouterr().out)["devices"][0]["roofs"]}
    assert shares["mma"] == pytest.approx(0.972, abs=1e-3)
    assert shares["read"] is None
