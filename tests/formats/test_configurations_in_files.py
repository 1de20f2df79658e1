"""Configurations and spilled registers wherever a run is shown as a file or in a terminal."""

from __future__ import annotations

import csv
import io
import re

import msgspec
import pytest
import sample_runs as samples
import sample_tunings as tunings
from rich.console import Console

from kernelviz import formats
from kernelviz.cli import tables
from kernelviz.core.run import Run
from kernelviz.formats import export_named


def tuned() -> Run:
    """A run with a tuned variant at one size and its default at another; its kernels spill 48 bytes."""
    made = samples.run(
        op="add", sizes=({"n": 2**20}, {"n": 2**26}), dtype="fp32", shares={"torch_eager": 0.8, "triton_block": 0.9}
    )
    results = []
    for result in made.results:
        kernels = tuple(msgspec.structs.replace(k, local_memory_bytes=48) for k in result.kernels)
        more = {}
        if result.variant == "triton_block":
            large = result.problem.sizes["n"] == 2**26
            more = {"configuration": {"block": 256 if large else 1024}, "tuned_by": "r7" if large else None}
        results.append(msgspec.structs.replace(result, kernels=kernels, **more))
    return msgspec.structs.replace(made, results=tuple(results))


def test_a_document_and_parquet_keep_them() -> None:
    for name in ("json", "parquet"):
        run = tuned()
        assert formats.read(export_named(name).encode(run)) == (run,)
        sweep = tunings.run()
        assert formats.read(export_named(name).encode(sweep)) == (sweep,)


def test_a_data_frame_and_csv_have_a_column_for_them() -> None:
    found = list(csv.DictReader(io.StringIO(export_named("csv").encode(tuned()).decode())))
    assert [(r["n"], r["configuration"], r["tuned_by"]) for r in found if r["variant"] == "triton_block"] == [
        (str(2**20), "block=1024", ""),
        (str(2**26), "block=256", "r7"),
    ]
    assert {(r["configuration"], r["tuned_by"]) for r in found if r["variant"] == "torch_eager"} == {("", "")}


@pytest.mark.parametrize("to", ["md", "html"])
def test_pages_say_it(to: str) -> None:
    text = export_named(to).encode(tuned()).decode()
    assert "tuned: block=256 (run r7)" in text
    assert "default configuration: block=1024" in text


def test_the_offline_page_has_a_column_only_where_something_is_configured() -> None:
    head = re.compile(r"<th scope=col[^>]*>Configuration")
    assert head.search(export_named("html").encode(tuned()).decode())
    assert not head.search(export_named("html").encode(samples.run()).decode())


def test_spilled_registers_stand_beside_registers_and_shared_memory() -> None:
    page = export_named("html").encode(tuned()).decode()
    assert "Local memory per thread, B" in page
    assert "registers that were spilled" in page
    assert ">48<" in page
    console = Console(width=200, file=io.StringIO())
    console.print(tables.report(tuned(), (), verbose=True))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"Registers per thread\s+Shared memory\s+Local memory per thread", said)
    assert re.search(r"triton_block\s+triton_block_kernel.*40\s+1024 B\s+48 B", said)
    assert "triton_block, tuned: block=256 (run r7) (n=2^26)" in said
    assert "triton_block, default configuration: block=1024 (n=2^20)" in said


def test_a_tuning_of_144_configurations_is_a_page_that_can_be_read() -> None:
    run = tunings.run()
    page = export_named("html").encode(run)
    assert len(page) < 6_000_000
    text = page.decode()
    assert "Charts show the best 10 of 144 variants and the baseline; the tables contain all of them." in text
    assert text.count("<td>triton tuned[block=") >= 144, "the table has every configuration"
    assert "kernelviz tune add triton_tuned --size n=67108864" in text
