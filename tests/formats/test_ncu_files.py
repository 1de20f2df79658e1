"""Import of `ncu --csv`: both layouts with their units, and files that are damaged or hostile. All files are made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelviz import formats
from kernelviz.core import DocumentError
from kernelviz.core.counters import KernelCounters
from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Run
from kernelviz.hardware.nsight_compute import csv_output
from kernelviz.hardware.nsight_compute.csv_output import is_ncu_csv, launches
from kernelviz.hardware.nsight_compute.units import quantity
from kernelviz.metrics import foreign_times

FOLDER = Path(__file__).parent / "ncu"
RAW, DETAILS, METRICS = ((FOLDER / f"{name}.csv").read_text() for name in ("raw", "details", "metrics"))


def read(text: str) -> Run:
    (run,) = formats.read(text)
    return run


def kernel_of(result: Result) -> KernelCounters:
    assert result.hardware_counters is not None
    (kernel,) = result.hardware_counters.kernels
    return kernel


def test_the_raw_page_has_a_case_for_each_kernel_with_units_converted() -> None:
    run = read(RAW)
    copy, empty = run.results
    assert (run.plan.op, run.environment.device.compute_capability) == ("app", (9, 0))
    assert copy.variant == "void copy_kernel<float, 4>(const float *, float *)"
    assert isinstance(copy.outcome, Timing)
    time = copy.outcome.other_times["GPU time (ncu)"]
    assert (time.estimate, time.method) == (pytest.approx(53.3e-6), "ncu: median of 3 launches, gpu__time_duration")
    kernel = kernel_of(copy)
    assert kernel == KernelCounters(
        kernel=copy.variant,
        grid=(65536, 1, 1),
        block=(256, 1, 1),
        registers_per_thread=16,
        duration_s=pytest.approx(53.3e-6),
        clock_hz=pytest.approx(1.97e9),
        dram_read_bytes=67_130_000,
        dram_written_bytes=67_000_000,
        l2_hit_fraction=pytest.approx(0.5002),
        fma_fraction=pytest.approx(0.041),
        issue_fraction=0.15,
        stalls={"long_scoreboard": 21.35},
    )
    assert copy.hardware_counters is not None
    assert (copy.hardware_counters.launches, copy.hardware_counters.cold) == (3, None)
    assert kernel_of(empty).dram_read_bytes is None, "n/a is unknown, not 0"
    assert kernel_of(empty).dram_written_bytes == 0
    assert "1 other metrics of it are not read" in run.note
    assert foreign_times.alone(run)


def test_the_details_page_is_read_by_its_labels() -> None:
    (gemm,) = read(DETAILS).results
    assert kernel_of(gemm) == KernelCounters(
        kernel="gemm(float *)",
        grid=(64, 8, 1),
        block=(128, 1, 1),
        registers_per_thread=96,
        duration_s=pytest.approx(1.25e-3),
        clock_hz=pytest.approx(1.41e9),
        l2_hit_fraction=pytest.approx(0.881),
        issue_fraction=0.62,
        eligible_warps=1.2,
    )


def test_metrics_of_the_command_line_are_read_by_their_ids_and_shapes_are_cases() -> None:
    first, second = read(METRICS).results
    assert [r.variant for r in (first, second)] == ["add grid 2x1x1 block 64x1x1", "add grid 4x1x1 block 64x1x1"]
    assert kernel_of(first).dram_read_bytes == 1020
    assert kernel_of(first).duration_s == pytest.approx(1.504e-6)
    assert kernel_of(second).tensor_fraction == pytest.approx(0.615), "the busier of the pipes of tensor cores"


def test_an_imported_run_survives_every_document() -> None:
    run = read(RAW)
    assert formats.read(formats.encode(run)) == (run,)
    parquet = formats.export_named("parquet").encode(run)
    assert formats.read(parquet)[0].results == run.results


@pytest.mark.parametrize(
    ("value", "unit", "kind", "expected"),
    [
        ("1.5", "Gbyte", "bytes", 1.5e9),
        ("1,234,567", "byte", "bytes", 1234567),
        ("2", "Tbyte", "bytes", 2e12),
        ("3", "second", "time", 3.0),
        ("3.25", "usecond", "time", 3.25e-6),
        ("4", "ms", "time", 4e-3),
        ("1410", "Mhz", "frequency", 1.41e9),
        ("1.41", "cycle/nsecond", "frequency", 1.41e9),
        ("7", "sector", "sectors", 224),
        ("1.2", "Ksector", "count", 1200),
        ("100.2", "%", "share", 1.002),
        ("1e3", "", "ratio", 1000.0),
        ("", "", "ratio", None),
        ("N/A", "byte", "bytes", None),
        ("nan", "%", "share", None),
        ("-inf", "%", "share", None),
    ],
)
def test_units(value: str, unit: str, kind: Any, expected: float | None) -> None:
    got = quantity(value, unit, kind, "path")
    assert got == (expected if expected is None else pytest.approx(expected))


HOSTILE: list[tuple[str, str, str, str]] = [
    ("a decimal comma", RAW.replace('"52.30"', '"52,30"'), r'line 7, "gpu__time_duration', "LC_ALL=C"),
    ("an unknown unit", RAW.replace('"Mbyte"', '"Mibyte"'), r'line 7, "dram__bytes_read.sum"', "--print-units base"),
    ("no number", RAW.replace('"67.11"', '"=cmd()"'), r'line 7, "dram__bytes_read.sum"', "is not a number"),
    ("a negative number", RAW.replace('"67.11"', '"-67"'), r'line 7, "dram__bytes_read.sum"', "outside 0"),
    ("a huge number", RAW.replace('"67.11"', '"9e300"'), r'line 7, "dram__bytes_read.sum"', "outside 0"),
    ("a long number", RAW.replace('"67.11"', f'"{"9" * 5000}"'), r'line 7, "dram__bytes_read.sum"', "is not a number"),
    ("a huge share", RAW.replace('"50.02"', '"5000"'), r'line 7, "lts__t_sector_hit_rate.pct"', "outside 0 to 2"),
    ("a grid of text", RAW.replace("(65,536, 1, 1)", "(x, 1, 1)"), r'line 7, "Grid Size"', "three sizes"),
    ("an empty grid", RAW.replace("(65,536, 1, 1)", "(0, 1, 1)"), r'line 7, "Grid Size"', "three sizes"),
    ("a row that is cut off", RAW[: RAW.rindex('"8","n/a"')], "line 10", "cut off"),
    ("a quote that is cut off", RAW[: RAW.rindex('", "*)') if '", "*)' in RAW else -3], "", "not valid CSV|cut off"),
    ("no units", "\n".join(line for line in RAW.splitlines() if not line.startswith('"",')), "units", "row of units"),
    ("no kernels", RAW[: RAW.index('"0","4711"')], "line 5", "has no launch"),
    ("only a header", DETAILS.splitlines()[0] + "\n", "line 1", "has no launch"),
    ("two tables", RAW + RAW[RAW.index('"ID"') :], "line 11", "second table"),
    ("no kernel names", METRICS.replace('"Kernel Name"', '"Kernel"'), "", "not supported|Kernel Name"),
    ("no unit column", METRICS.replace('"Metric Unit",', '"Metric Units",'), "line 1", "Metric Unit"),
    ("no known metric", METRICS.replace("dram__", "a__").replace("gpu__", "b__").replace("sm__", "c__"), "metrics", "--metrics"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "message"), [(t, p, m) for _, t, p, m in HOSTILE], ids=[n for n, _, _, _ in HOSTILE]
)
def test_a_bad_file_is_refused_with_the_line_and_the_column(text: str, path: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message) as refused:
        formats.read(text)
    assert path in str(refused.value)


def test_too_much_of_anything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_output, "MOST_LAUNCHES", 3)
    with pytest.raises(DocumentError, match="more than 3 launches"):
        launches(RAW.encode())
    monkeypatch.setattr(csv_output, "MOST_LINES", 2)
    with pytest.raises(DocumentError, match="more than 2 lines"):
        launches(DETAILS.encode())
    monkeypatch.setattr(csv_output, "MOST_COLUMNS", 5)
    with pytest.raises(DocumentError, match="at most 5 are read"):
        launches(RAW.encode())


def test_other_files_are_not_taken_for_ncus() -> None:
    assert is_ncu_csv(RAW.encode())
    assert not is_ncu_csv(b'"ID","Name"\n"0","Kernel Name"\n')
    assert not is_ncu_csv(b'{"ID": "Kernel Name"}')
    assert not is_ncu_csv(b"")


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_damage_is_read_or_refused_with_a_reason(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([RAW, DETAILS, METRICS]))
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    inserted = data.draw(st.text(alphabet='",\n\r\t 0-9aZ%.\x00()eE+é', max_size=20))
    damaged = text[:at] + inserted + text[at + length :]
    try:
        runs = formats.read(damaged)
    except DocumentError:
        return
    assert all(formats.read(formats.encode(run)) == (run,) for run in runs)
