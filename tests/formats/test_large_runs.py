"""Runs of very many kernels and cases: the offline page and the tables are short by a rule that they state; JSON has all."""

from __future__ import annotations

import time
from itertools import pairwise

import msgspec
import sample_runs as samples

from kernelviz.core import Kernel, Run
from kernelviz.formats import exports, read
from kernelviz.formats.offline import selection
from kernelviz.metrics.rows import rows
from kernelviz.tables.kernels import MOST_OF_CASE, MOST_TOGETHER, kernels, shortening


def _with_kernels(run: Run, count: int) -> Run:
    """Each case launches so many kernels; every 97th is the longest of its neighbours."""
    launched = tuple(
        Kernel(name=f"kernel<{i}>", duration_s=1e-6 * (1 + i % 97), grid=(132, 1, 1), block=(256, 1, 1))
        for i in range(count)
    )
    return msgspec.structs.replace(
        run, results=tuple(msgspec.structs.replace(r, kernels=launched) for r in run.results)
    )


def _page(run: Run) -> str:
    return exports()["html"].encode(run).decode()


def test_a_page_of_a_million_kernels_is_written_in_seconds_and_says_what_it_leaves_out() -> None:
    run = _with_kernels(samples.run(sizes=samples.RMSNORM_SWEEP[:2]), 100_000)
    begun_s = time.process_time()
    page = _page(run)
    # 2 s on an idle core; a row for each kernel took minutes and made a page of 300 MB.
    assert time.process_time() - begun_s < 15
    assert len(page) < 3_000_000
    assert "The calls launch 1,000,000 kernels. The longest of each case are listed" in page
    assert "99,900 shorter kernels together" in page
    assert page.count("shorter kernels together") == len(run.results)


def test_the_longest_kernels_of_a_case_stay_in_their_order_and_the_others_are_summed() -> None:
    run = _with_kernels(samples.run(sizes=samples.RMSNORM_SWEEP[:1]), 1000)
    listed = kernels(rows(run, ()))
    of_first = [row.kernel for row in listed if row.result is listed[0].result]
    assert len(of_first) == MOST_OF_CASE + 1
    numbers = [int(kernel.name[7:-1]) for kernel in of_first[:-1]]
    assert numbers == sorted(numbers)
    whole = sum(kernel.duration_s or 0 for kernel in run.results[0].kernels)
    assert abs(sum(kernel.duration_s or 0 for kernel in of_first) - whole) < 1e-12
    assert min(kernel.duration_s or 0 for kernel in of_first[:-1]) >= 87e-6


def test_a_usual_run_lists_every_kernel() -> None:
    run = _with_kernels(samples.run(), MOST_OF_CASE // 4)
    table = rows(run, ())
    assert len(kernels(table)) == sum(len(r.kernels) for r in run.results)
    assert shortening(table) == ""


def test_the_table_of_very_many_cases_is_bounded() -> None:
    run = _with_kernels(samples.run(sizes=samples.RMSNORM_SWEEP[:1]), 3)
    table = rows(run, ()) * MOST_TOGETHER
    assert len(kernels(table)) <= 3 * MOST_TOGETHER
    assert "The JSON document has all of them" in shortening(table)


def test_json_has_every_kernel_and_every_case() -> None:
    run = _with_kernels(samples.run(), 1000)
    (again,) = read(exports()["json"].encode(run))
    assert [len(r.kernels) for r in again.results] == [1000] * len(run.results)


def test_a_page_of_very_many_cases_shows_sizes_that_are_evenly_spaced_and_says_so() -> None:
    run = samples.run(sizes=[{"m": 64, "n": 128 * (i + 1)} for i in range(400)])
    part = selection.part_of(run)
    sizes = [p.sizes["n"] for p in part.plan.problems]
    assert len(part.results) == len(sizes) * 5 <= selection.MOST_CASES
    assert sizes[-1] == 128 * 400
    assert len({b - a for a, b in pairwise(sizes)}) == 1
    said = selection.describe_part(run, part)
    assert said.startswith(f"This page shows {len(part.results):,} of 2,000 cases")
    text = exports()["md"].encode(run).decode()
    assert "This table shows 500 of 2,000 cases" in text
    assert text.count("| `torch_eager` |") == len(sizes)
    assert "--sweep n=128,256,384," in text, "the command measures every case again"


def test_a_tuning_of_very_many_variants_keeps_the_baseline() -> None:
    run = samples.run(sizes=samples.RMSNORM_SWEEP[:2])
    names = (*(f"v{i}" for i in range(2 * selection.MOST_CASES)), run.plan.baseline)
    part = selection.part_of(msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, variants=names)))
    assert len(part.plan.variants) == selection.MOST_CASES
    assert part.plan.baseline in part.plan.variants
    assert len(part.plan.problems) == 1


def test_only_some_sizes_have_charts_if_there_are_many() -> None:
    run = samples.run(sizes=[{"m": 64, "n": 128 * (i + 1)} for i in range(60)])
    chosen = selection.sizes_with_charts(run, run.plan.problems)
    assert chosen[-1] == run.plan.problems[-1]
    assert len(chosen) * (3 + len(run.plan.variants)) <= selection.MOST_CHARTS
    assert (
        selection.describe_sizes(len(chosen), 60)
        == f"{len(chosen)} of 60 sizes, evenly spaced, have charts of their own."
    )


def test_a_usual_run_is_shown_whole() -> None:
    run = samples.run()
    assert selection.part_of(run) is run
    assert selection.sizes_with_charts(run, run.plan.problems) == run.plan.problems
    assert "evenly spaced" not in _page(run)


def test_an_export_to_gbench_without_a_time_is_whole_json() -> None:
    failed = [samples.failed(p, "torch_eager", "crash") for p in samples.problems("rmsnorm", samples.RMSNORM_SWEEP[:1])]
    document = msgspec.json.decode(exports()["gbench"].encode(samples.run(failed)))
    assert document["benchmarks"] == []
    assert len(document["context"]["without_a_time"]) == 1
