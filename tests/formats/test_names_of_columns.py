"""No column is lost where names are the same: axes called as columns, times of other tools that differ in small things only."""

from __future__ import annotations

import csv
import io

import msgspec
import pyarrow.parquet as pq
import sample_runs as samples

from kernelviz.core.result import Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import exports, parquet, read

SIZES = {"result": 3, "n_samples": 4, "time_s": 5, "size_time_s": 6, "device_cold_s_samples": 7, "other_p50_s": 8}
TIMES = {"p50": 1.0, "P50": 2.0, "p 50": 3.0}


def odd_run() -> Run:
    run = samples.run()
    problem = msgspec.structs.replace(run.plan.problems[0], op="mine", sizes=SIZES)
    timing = Timing(other_times={name: Figure(estimate=time_s) for name, time_s in TIMES.items()})
    result = msgspec.structs.replace(run.results[0], problem=problem, outcome=timing)
    return msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, problems=(problem,)), results=(result,))


def test_csv_has_every_size_and_time() -> None:
    (line,) = csv.DictReader(io.StringIO(exports()["csv"].encode(odd_run()).decode()))
    assert (line["result"], line["n_samples"], line["device_cold_s_samples"]) == ("3", "4", "7")
    assert {line["size_time_s"], line["size_size_time_s"]} == {"5", "6"}
    assert line["time_s"] == "", "the case's own time, which it has not"
    assert line["other_p50_s"] == "8"
    assert [line[n] for n in ("other_p50_2_s", "other_p50_3_s", "other_p_50_s")] == ["1.0", "2.0", "3.0"]


def test_parquet_has_every_size_and_time_in_its_type_and_reads_back() -> None:
    run = odd_run()
    raw = parquet.encode(run)
    found = pq.read_table(io.BytesIO(raw))
    assert len(set(found.column_names)) == len(found.column_names)
    (line,) = found.to_pylist()
    values = {name: value for name, value in line.items() if isinstance(value, int) and not isinstance(value, bool)}
    assert set(SIZES.values()) <= set(values.values())
    assert line["size_result"] == 3
    assert line["n_samples"] == 4
    assert line["size_device_cold_s_samples"] == 7
    assert [line[n] for n in ("other_p50_2_s", "other_p50_3_s", "other_p_50_s")] == [1.0, 2.0, 3.0]
    assert read(raw) == (run,)
