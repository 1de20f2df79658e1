"""Hardware counters in documents: round trips, digests of documents without them, and numbers that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import sample_counters
import sample_runs as samples

from kernelviz.core import DocumentError
from kernelviz.core.merge import merge_later_result
from kernelviz.core.result import Result, Timing
from kernelviz.formats import document, export_named, read
from kernelviz.store import Store

PLAIN = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32")
RUN = samples.run(
    [sample_counters.counted(r, sample_counters.kernel("a"), sample_counters.kernel("b")) for r in PLAIN.results],
    op="add", sizes=[{"n": 1024}], dtype="fp32",
)  # fmt: skip


def test_documents_without_counters_keep_their_digest() -> None:
    before = "c082a090e78bff972cef670a179c2a3cf2b009ca3f567d2081cecbaa1e384ffd"
    assert document.digest(PLAIN) == before
    assert b"counters" not in document.encode(PLAIN)
    assert document.digest(RUN) != before


def test_counters_survive_document_parquet_and_store(tmp_path: Any) -> None:
    assert read(document.encode(RUN)) == (RUN,)
    assert read(export_named("parquet").encode(RUN))[0].results == RUN.results
    store = Store.open(tmp_path)
    store.runs.create(RUN, owner="")
    store.results.put(RUN.id, list(enumerate(RUN.results)))
    assert store.runs.load(RUN.id).results == RUN.results
    store.close()


def test_a_later_measurement_of_the_same_code_keeps_them_and_of_other_code_does_not() -> None:
    earlier = next(r for r in RUN.results if r.timing is not None)
    later: Result = msgspec.structs.replace(earlier, counters=msgspec.UNSET)
    assert isinstance(later.outcome, Timing)
    assert merge_later_result(earlier, later).hardware_counters == earlier.hardware_counters
    other = msgspec.structs.replace(later, source_digest="f" * 64)
    assert merge_later_result(earlier, other).hardware_counters is None
    warm_only = msgspec.structs.replace(later, outcome=Timing(device_warm_s=later.outcome.device_cold_s))
    assert merge_later_result(earlier, warm_only).hardware_counters == earlier.hardware_counters


Change = Callable[[dict[str, Any]], object]
HOSTILE: list[tuple[str, Change, str]] = [
    ("negative", lambda c: c["kernels"][0].update(dram_read_bytes=-1), r"counters\.kernels\[0\]\.dram_read_bytes: -1 is outside"),
    ("huge", lambda c: c["kernels"][1].update(l2_bytes=10**30), r"kernels\[1\]\.l2_bytes"),
    ("share", lambda c: c["kernels"][0].update(fma_fraction=3.0), r"fma_fraction: 3.0 is outside 0 to 2"),
    ("duration", lambda c: c["kernels"][0].update(duration_s=1e300), r"duration_s"),
    ("clock", lambda c: c["kernels"][0].update(clock_hz=1e300), r"clock_hz"),
    ("grid", lambda c: c["kernels"][0].update(grid=[0, 1, 1]), r"grid: 0 is outside"),
    ("stall", lambda c: c["kernels"][0]["stalls"].update(wait=-2.0), r"stalls\.wait"),
    ("unknown stall", lambda c: c["kernels"][0]["stalls"].update(hunger=1.0), r"Invalid enum value"),
    ("warps", lambda c: c["kernels"][0].update(eligible_warps=1e9), r"eligible_warps"),
    ("kernels", lambda c: c.update(kernels=c["kernels"] * 300), r"600 kernels; at most 512"),
    ("name", lambda c: c["kernels"][0].update(kernel="k" * 2001), r"2,001 characters"),
    ("version", lambda c: c.update(version="v" * 2001), r"2,001 characters"),
    ("not read", lambda c: c.update(not_read=["m"] * 201), r"201 metrics"),
    ("launches", lambda c: c.update(launches=0), r"launches"),
    ("tool", lambda c: c.update(tool="nvprof"), r"Invalid enum value"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [(c, m) for _, c, m in HOSTILE], ids=[name for name, _, _ in HOSTILE])
def test_impossible_counters_are_refused_with_the_path_of_the_field(change: Change, message: str) -> None:
    values = json.loads(document.encode(RUN))
    change(values["results"][0]["counters"])
    with pytest.raises(DocumentError, match=message):
        read(json.dumps(values))
