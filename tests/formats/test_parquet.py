"""Parquet holds everything of a run: whatever can be in a document comes back; what is damaged is refused."""

from __future__ import annotations

import io

import drawn_runs
import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sample_figures as figures
import sample_runs as samples
from hypothesis import given, settings
from read_here import read

from kernelviz.core.errors import DocumentError
from kernelviz.core.problem import Cost
from kernelviz.core.result import Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import decode, digest, encode, parquet, shipped_runs


@settings(deadline=None, max_examples=300)
@given(drawn_runs.runs)
def test_a_run_comes_back_as_it_was(run: Run) -> None:
    (again,) = read(parquet.encode(run))
    assert again == decode(encode(run)) == run
    assert digest(again) == digest(run)
    assert encode(again) == encode(run)


@pytest.mark.parametrize("run", [samples.mixed(), figures.run(), samples.run([]), shipped_runs.load("h200-rmsnorm")])
def test_native_to_parquet_to_native_is_the_same_bytes(run: Run) -> None:
    assert encode(read(parquet.encode(run))[0]) == encode(run)


def test_whole_numbers_beyond_64_bits_come_back() -> None:
    first = samples.mixed().results[0]
    huge = msgspec.structs.replace(first, cost=Cost(work_flop=2**90, read_bytes=2**70, written_bytes=0))
    run = msgspec.structs.replace(samples.mixed(), results=(huge,))
    assert read(parquet.encode(run)) == (run,)


def test_it_can_be_queried_without_kernelviz() -> None:
    run = shipped_runs.load("h200-matmul")
    frame = pd.read_parquet(io.BytesIO(parquet.encode(run)))
    assert len(frame) == len(run.results)
    assert list(frame.columns[:6]) == ["run", "device", "op", "m", "n", "k"]
    for line, result in zip(frame.to_dict("records"), run.results, strict=True):
        assert isinstance(result.outcome, Timing)
        cold = result.outcome.device_cold_s
        assert cold is not None
        assert (line["variant"], line["m"], line["time_s"]) == (
            result.variant, result.problem.sizes["m"], cold.estimate,
        )  # fmt: skip
        assert tuple(line["device_cold_s_samples"]) == cold.samples


def test_an_axis_may_be_called_as_a_column() -> None:
    run = samples.run()
    sizes = {"variant": 3, "result": 4, "time_s": 5, "device_cold_s_samples": 6}
    odd = tuple(msgspec.structs.replace(p, op="mine", sizes=sizes) for p in run.plan.problems[:1])
    result = msgspec.structs.replace(run.results[0], problem=odd[0])
    made = msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, problems=odd), results=(result,))
    assert read(parquet.encode(made)) == (made,)


def table(run: Run) -> pa.Table:
    return pq.read_table(io.BytesIO(parquet.encode(run)))


def written(found: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(found, out)
    return out.getvalue()


def test_samples_that_are_missing_are_noticed() -> None:
    found = table(figures.run())
    for name in ("device_cold_s_samples", "loop_s_samples"):
        with pytest.raises(DocumentError, match=r"blocks hold \d+ samples, there are 0|changed since it was written"):
            read(written(found.drop_columns([name])))
    bare = msgspec.structs.replace(
        samples.mixed().results[0], outcome=Timing(loop_s=Figure(estimate=1.0, samples=(1.0,)))
    )
    found = table(samples.run([bare]))
    with pytest.raises(DocumentError, match="changed since it was written"):
        read(written(found.drop_columns(["loop_s_samples"])))


@pytest.mark.parametrize("wrong", [-1.0, 0.0, 1e10, float("nan"), float("inf")])
def test_a_bad_row_is_named(wrong: float) -> None:
    run = figures.run()
    found = table(run)
    lists = found.column("device_cold_s_samples").to_pylist()
    lists[2][5] = wrong
    at = found.schema.get_field_index("device_cold_s_samples")
    bad = found.set_column(at, "device_cold_s_samples", pa.array(lists, pa.list_(pa.float64())))
    with pytest.raises(DocumentError, match="outside") as refused:
        read(written(bad))
    assert refused.value.path == "$.results[2].outcome.device_cold_s.samples[5]"
    texts = found.column("result").to_pylist()
    texts[4] = "{"
    bad = found.set_column(found.schema.get_field_index("result"), "result", pa.array(texts))
    with pytest.raises(DocumentError, match="truncated") as refused:
        read(written(bad))
    assert refused.value.path == "$.results[4]"


def test_parquet_of_others_is_refused() -> None:
    found = table(samples.run())
    for bad, words in (
        (pa.table({"a": [1]}), "not a run of kernelviz"),
        (found.drop_columns(["result"]), "not a run of kernelviz"),
        (found.replace_schema_metadata({}), "not a run of kernelviz"),
        (found.replace_schema_metadata({b"kernelviz": b"[]"}), "Expected `object`|not an object"),
        (found.replace_schema_metadata({b"kernelviz": b'{"schema": "kernelviz/3"}'}), "newer kernelviz"),
        (found.append_column("result", found.column("result")), "two columns"),
        (found.set_column(0, "busy_s_samples", pa.array(["x"] * found.num_rows)), "two columns|holds string"),
    ):
        with pytest.raises(DocumentError, match=words):
            read(written(bad))


def test_a_small_file_that_unpacks_to_very_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_BYTES", parquet.MAX_BYTES // 20)
    found = table(samples.run([]))
    many = 1000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * many, pa.int32()), pa.array(["x" * 100_000]))
    bomb = pa.table({"result": text}).replace_schema_metadata(found.schema.metadata)
    raw = io.BytesIO()
    pq.write_table(
        bomb.cast(pa.schema([("result", pa.string())], metadata=bomb.schema.metadata)), raw, compression="zstd"
    )
    assert len(raw.getvalue()) < 1_000_000
    with pytest.raises(DocumentError, match="unpacked it has more than"):
        read(raw.getvalue())
