"""docs/kernels.md: its table is that of the committed runs, and every miss in it has its reason."""

import functools
import re
from pathlib import Path

from kernelviz import bench as use_cases
from kernelviz.bench.library_comparison import library_comparison
from kernelviz.metrics.library_comparison import AutoSummary, ComparisonRow
from kernelviz.ops import catalogue
from kernelviz.text.library_comparison import HEADINGS, conclusion, describe_auto, format_row, markdown

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "kernels.md").read_text()


@functools.cache
def found() -> tuple[ComparisonRow, ...]:
    return library_comparison(use_cases.current(), [str(ROOT / "docs" / "h200-ladders.jsonl.gz")])


def test_the_table_is_made_of_the_runs() -> None:
    (written,) = re.findall(r"<!-- library-comparison: .*? -->\n(.*?)\n<!-- /library-comparison -->", PAGE, re.DOTALL)
    assert written == markdown(found()), (
        "write it again with `kernelviz library-comparison docs/h200-ladders.jsonl.gz --markdown`"
    )


def test_the_conclusion_is_that_of_the_table() -> None:
    (problems, mean, level) = re.search(
        r"Over (\d+) problems the geometric mean is ([\d.]+); for (\d+) problems the ratio is at least 1.00", PAGE
    ).groups()  # type: ignore[union-attr]
    assert str(conclusion(found())).startswith(
        f"{problems} problems: own variants are {mean} × as fast as the best library (geometric mean); {level} at 1.00"
    )


def test_every_miss_has_its_reason_in_one_line() -> None:
    section = PAGE.split("## Where a library is faster")[1].split("\n## ")[0]
    ratio = HEADINGS.index("own / best library")
    missed = {format_row(s)[0] for s in found() if s.ratio is not None and float(format_row(s)[ratio].split()[0]) < 1}
    assert missed
    assert set(re.findall(r"^- `([^`]+)`:", section, re.MULTILINE)) == missed


def test_the_choice_of_the_rules_is_near_the_best_own_variant() -> None:
    summary = AutoSummary.of(found())
    assert summary.problems > 130  # Without problems whose rule names a variant that these runs do not have.
    assert summary.as_fast >= 0.95 * summary.problems
    assert (summary.lowest or 0) >= 0.85
    assert str(describe_auto(summary)).removeprefix("auto: ") in PAGE


def test_what_is_not_in_the_table_is_named() -> None:
    missing = set(catalogue()) - {s.problem.op for s in found()} - {"matmul"}
    said = PAGE.split("Not in this table yet")[1].split("Their kernels")[0] if "Not in this table yet" in PAGE else ""
    assert set(re.findall(r"`(\w+)`", said)) == missing


def test_no_own_variant_in_the_runs_was_wrong() -> None:
    for row in found():
        assert row.own is not None, row.problem.key
