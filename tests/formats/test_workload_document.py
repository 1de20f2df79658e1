"""The document of a run of a workload: it comes back as it was, and a file from elsewhere is checked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import sample_workloads as samples

from kernelviz.api.workloads import WorkloadReport
from kernelviz.core import DocumentError, UnknownName
from kernelviz.core.workload import Counted
from kernelviz.formats import shipped_runs, workload_document, workload_exports
from kernelviz.formats.workload_document import decode, digest, encode, sealed
from kernelviz.metrics.workloads import points, rows
from kernelviz.tables.column import View
from kernelviz.tables.workloads import ladder_columns
from kernelviz.text.workload_insight import describe_insight
from kernelviz.text.workloads import describe_figure, describe_neutral, format_point

PUBLISHED = Path(__file__).parents[2] / "docs" / "kernelviz-workload-1.schema.json"
Change = Callable[[dict[str, Any]], object]


def test_a_run_comes_back_as_it_was_and_its_digest_is_of_its_facts() -> None:
    run = samples.run(failing=("fast",))
    data = encode(run)
    assert decode(data) == run
    assert sealed(data) == "unchanged"
    assert workload_document.recognises(data)
    assert digest(msgspec.structs.replace(run, title="another", note="another")) == digest(run)
    values = json.loads(data)
    values["results"][0]["values"]["sent"]["value"] += 1
    assert sealed(json.dumps(values)) == "changed"
    del values["digest"]
    assert sealed(json.dumps(values)) == "unsealed"
    other = msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, plugins=("/home/me/mine.py",)))
    assert digest(other) == digest(run), "paths are of one machine"


def test_the_direction_of_a_figure_is_that_of_this_version_and_the_document_keeps_its_own() -> None:
    """The recorded all-reduce says that more bus bandwidth is better; this version says that neither direction is."""
    packed = shipped_runs.folder() / "workloads" / "w-h200-all-reduce.json.gz"
    data = gzip.decompress(packed.read_bytes())
    recorded = {
        figure["name"]: figure["better"] for figure in json.loads(data)["declared"]["figures"] if "better" in figure
    }
    assert recorded["bus_bytes_per_s"] == "higher"
    run = decode(data)
    figure = run.declared.figure_named("bus_bytes_per_s")
    assert figure is not None
    assert figure.better == "neither"
    assert str(describe_figure(run, figure)) == ""
    assert str(describe_neutral(figure)).startswith("Bus bandwidth ranks no variants")
    assert sealed(data) == "unchanged"
    for same in (run, WorkloadReport.of(run)):
        assert digest(same) == json.loads(data)["digest"]
        assert json.loads(encode(same)) == json.loads(data)


def test_explanations_are_those_of_this_version_and_the_document_keeps_its_own() -> None:
    """The recorded gradient_sync says "Planted delay" without a unit, and the recorded all-reduce explains bf16 less."""
    folder = shipped_runs.folder() / "workloads"
    data = gzip.decompress((folder / "w-h200-gradient-sync.json.gz").read_bytes())
    run = decode(data)
    said = str(describe_insight(run))
    assert said.startswith("bucket_200 is best in Step at planted delay 0 µs: 19.1 ms"), "not where a delay was planted"
    assert "better than ddp by 1.12 ×" in said
    assert said.endswith("1 point with a planted delay is not counted.")
    assert "planted delay 2,000 µs" in [str(format_point(run, values)) for values in points(run).values()]
    (delay,) = (column for column in ladder_columns(run, rows(run), View.WIDE) if column.name == "delay_us")
    assert {str(delay.value(row)) for row in rows(run)} == {"0 µs", "2,000 µs"}
    assert sealed(data) == "unchanged"
    assert json.loads(encode(run)) == json.loads(data)
    exchanged = decode(gzip.decompress((folder / "w-h200-all-reduce.json.gz").read_bytes()))
    figure = exchanged.declared.figure_named("bus_bytes_per_s")
    assert figure is not None
    assert "bf16 sends half as many bytes" in figure.help


def test_a_value_that_is_not_finite_is_left_out_and_named() -> None:
    run = samples.run()
    first = msgspec.structs.replace(run.results[0], values={"loss": Counted(value=float("inf"))})
    back = decode(encode(msgspec.structs.replace(run, results=(first,))))
    assert back.results[0].values == {}
    assert [(n.kind, n.text) for n in back.results[0].notes] == [("not_finite", "loss")]


def _result(values: dict[str, Any]) -> dict[str, Any]:
    return values["results"][0]  # type: ignore[no-any-return]


FAULTS: dict[str, tuple[Change, str]] = {
    "schema": (lambda v: v.update(schema="kernelviz-workload/9"), "update kernelviz"),
    "case": (lambda v: _result(v)["case"].update(variant="other"), "not in the plan"),
    "twice": (lambda v: v["results"].append(_result(v)), "has a result already"),
    "figure": (lambda v: _result(v)["values"].update(joy={"kind": "counted", "value": 1.0}), "joy.*not declared"),
    "huge": (lambda v: _result(v)["values"]["sent"].update(value=1e300), "outside"),
    "negative": (lambda v: _result(v)["values"]["sent"].update(value=-1.0), "no quantity"),
    "interval": (lambda v: _result(v)["values"]["step_s"].update(low=9.0, high=1.0), "falling order"),
    "rounds": (lambda v: _result(v)["values"]["step_s"].update(rounds=[1, 2]), "2 rounds of 30 samples"),
    "span": (lambda v: _result(v)["timeline"]["spans"][0].update(end_s=-1.0), "outside"),
    "axes": (lambda v: v["plan"]["cases"][0]["values"].update(more=1), "not those of the workload"),
    "workload": (lambda v: v["plan"].update(workload="other"), "another workload"),
    "no cases": (lambda v: v["plan"].update(cases=[]), "at least one case"),
    "chart": (lambda v: v["declared"]["chart"].update(figures=["none"]), "not declared"),
    "group": (lambda v: _result(v).update(groups=[{"parts": ["up"], "kernels_s": [-1.0]}]), r"kernels_s\[0\].*outside"),
    "devices": (lambda v: v["devices"].append(v["devices"][0]), "another number of devices"),
    "note": (lambda v: _result(v).update(notes=[{"kind": "other", "text": "x" * 30_000}]), "30000 characters"),
    "type": (lambda v: v["declared"].update(figures=3), "declared.figures"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_document_is_refused_with_the_place(fault: str) -> None:
    change, message = FAULTS[fault]
    values = json.loads(encode(samples.run()))
    change(values)
    with pytest.raises(DocumentError, match=message):
        decode(json.dumps(values))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": 3}', b"[" * 100_000])
def test_bytes_that_are_no_document_are_refused(data: bytes) -> None:
    assert not workload_document.recognises(data)
    with pytest.raises(DocumentError):
        decode(data)


def test_the_exports_hold_every_case_and_interpret_no_text() -> None:
    run = samples.run(failing=("fast",))
    page = workload_exports.encode(run, "html").decode()
    assert "<b>steps</b>" not in page
    assert "&lt;b&gt;planted&lt;/b&gt;" in page
    assert "default-src 'none'" in page
    text = workload_exports.encode(run, "md").decode()
    assert text.count("| `slow *`") == 2
    assert "slow: Step" in text
    lines = workload_exports.encode(run, "csv").decode().splitlines()
    assert len(lines) == 1 + len(run.plan.cases)
    assert {"step_s", "step_s_low", "step_s_gain", "sent", "failure"} <= set(lines[0].split(","))
    assert str(workload_exports.MECHANICS_ONLY) in workload_exports.encode(samples.of_pair(), "md").decode()
    with pytest.raises(UnknownName):
        workload_exports.encode(run, "pdf")


def test_the_published_schema_is_that_of_the_types_and_describes_the_document() -> None:
    command = "python -m kernelviz.formats.workload_document > docs/kernelviz-workload-1.schema.json"
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json.loads(json.dumps(workload_document.schema())), (
        command
    )
    jsonschema.validate(json.loads(encode(samples.run(failing=("fast",)))), workload_document.schema())
