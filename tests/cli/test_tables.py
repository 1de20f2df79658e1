"""The table of a terminal: its trust column, why a time is not good, and with --verbose every figure and the whole line."""

from __future__ import annotations

import msgspec
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.cli import console, tables
from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Run
from kernelviz.metrics.rows import rows
from kernelviz.tables.cases import COLUMNS
from kernelviz.tables.column import View
from kernelviz.text.samples import WHY_MEDIAN
from kernelviz.text.times import FIGURES


def printed(capsys: pytest.CaptureFixture[str], run: Run, **how: object) -> list[str]:
    console.show(tables.report(run, run.environment.roofs, **how))  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


def test_the_level_stands_in_the_last_column_and_the_reasons_below(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, figures.run())
    cases = lines[2:14]
    assert [line.split("  ")[-1].strip() for line in cases] == ["✓ good"] * 11 + ["◐ caveats"]
    (why,) = (line for line in lines if line.startswith("◐ caveats (1 of 12 cases): "))
    assert "CUPTI timestamps (stream launch), 320 ns tracing overhead subtracted; not capturable" in why


def test_verbose_shows_every_figure_its_question_and_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, figures.run(), verbose=True)
    heads = next(line for line in lines if "Call eager p99" in line)
    unknown = ("energy_joules", "peak_call_bytes", "peak_bind_bytes")  # of this run
    shown = [
        c.title
        for c in COLUMNS
        if View.TIMES_NARROW in c.view and c.name not in unknown and not c.title.startswith("Naive")
    ]
    assert all(title in heads for title in shown)
    assert "Energy" not in heads
    assert all(f"{f.name}: {f.question}" in lines for f in FIGURES)
    text = "\n".join(lines)
    assert text.count("yes, 5.6×") == 3  # the smallest size
    assert text.count("480 samples in 24 blocks, 60 buffers") == 12


def test_figures_that_nobody_asked_for_have_no_column_and_failures_have_no_trust(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, samples.mixed(), verbose=True)
    assert not any("Call eager" in line for line in lines)
    assert not any("not measured" in line for line in lines)
    failed = next(line for line in lines if "does not compile" in line)
    assert "✓ good" not in failed


def test_warm_as_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, figures.run(), headline="warm")
    assert lines[0].endswith("warm L2")
    assert all(line.endswith("◐ caveats") for line in lines[2:14])
    assert "◐ caveats (12 of 12 cases): repeated blocks unknown" in lines


def test_a_rate_has_as_many_digits_as_its_interval_allows(capsys: pytest.CaptureFixture[str]) -> None:
    def widened(half_width: float) -> Result:
        made = samples.timed(*samples.problems("add", [{"n": 2**20}], "fp32"), "torch_eager", 0.9, device=samples.CPU)
        assert made.timing is not None
        low, high = (1e-2 * (1 + sign * half_width) for sign in (-1, 1))
        cold = msgspec.structs.replace(samples.figure(1e-2), estimate=1e-2, low=low, high=high)
        return msgspec.structs.replace(made, outcome=Timing(device_cold_s=cold))

    for half_width, bandwidth in ((0.002, "1.258 GB/s"), (0.03, "1.26 GB/s"), (0.7, "1.3 GB/s"), (2.5, "1.3 GB/s")):
        shown = "\n".join(printed(capsys, samples.run([widened(half_width)], op="add", shares={}, device=samples.CPU)))
        assert f" {bandwidth} " in shown
    assert "± 250 %" in shown


def test_reasons_are_told_once_however_many_cases_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    made = []
    for number, result in enumerate(figures.run().results):
        assert result.conditions is not None
        others = 2 if number < 3 else 3 if number == 3 else 0
        seen = msgspec.structs.replace(result.conditions, retried_blocks=number + 1, other_processes=others)
        made.append(msgspec.structs.replace(result, conditions=seen))
    lines = printed(capsys, msgspec.structs.replace(figures.run(), results=tuple(made)))
    suspect, note = (line for line in lines if line.startswith(("◐", "⚠")))
    assert suspect == "⚠ unreliable (4 of 12 cases): 2 other processes / 3 other processes"
    assert note.startswith("◐ caveats (1 of 12 cases): CUPTI timestamps (stream launch)")


def test_who_leads_up_to_where_stands_under_the_conclusion(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, samples.mixed())
    assert "By size: torch_compile is the fastest at all 6 sizes." in lines
    assert "         Excluded because of a wrong result: triton_block_per_row." in lines
    alone = printed(capsys, samples.run(shares={"torch_eager": 0.6}))
    assert not any(line.startswith("By size:") for line in alone)


def test_samples_have_a_line_for_each_figure_of_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    run = figures.run()
    console.show(tables.samples(rows(run, ()), run))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["n", "Variant", "Figure"]
    assert len([line for line in lines if "torch_eager" in line]) == 4 * 6
    cold = next(line for line in lines if "triton_block" in line and "device cold" in line)
    assert cold.split()[4:7] == ["480", "24", cold.split()[6]]
    assert "1980–1980" in cold
    bare = samples.run([samples.failed(run.results[0].problem, "torch_eager", "compile")], op="add")
    console.show(tables.samples(rows(bare, ()), bare))
    assert capsys.readouterr().out.startswith("No samples: ")


def test_samples_have_mean_minimum_and_maximum_and_the_reason_for_the_median(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = figures.run()
    console.show(tables.samples(rows(run, run.environment.roofs), run))
    out = capsys.readouterr().out
    heads = next(line for line in out.splitlines() if "p99" in line).split()
    assert heads[heads.index("p99") :][:4] == ["p99", "Min", "Mean", "Max"]
    assert " ".join(out.split()).endswith(WHY_MEDIAN)
