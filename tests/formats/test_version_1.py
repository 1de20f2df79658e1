"""Documents, Parquet files and rows of kernelviz/1: digests are checked before the upgrade, and what they said stays said."""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from typing import Any

import earlier_runs
import msgspec
import pytest

from kernelviz.core.errors import DocumentError
from kernelviz.core.notes import ForeignNote, SlowBlocks, TracingCostUnknown
from kernelviz.core.reasons import CudaError, ErrorTooLarge, MutatedInput
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.formats import decode, document, encode, exports, read
from kernelviz.metrics.rows import rows
from kernelviz.store.result_encoding import packed, unpacked
from kernelviz.text.cells import describe_outcome


def old() -> dict[str, Any]:
    """A document of version 1 with what only sentences said."""
    found: dict[str, Any] = json.loads(gzip.decompress((earlier_runs.FOLDER / "h200-rmsnorm.json.gz").read_bytes()))
    assert found["schema"] == "kernelviz/1"
    first, second, third = found["results"][:3]
    first["conditions"]["notes"] = [
        "what tracing adds to it is not known",
        "warm: 3 of 30 blocks ran at a clock more than 1 % under the first",
        "energy: nobody knows",
    ]
    first["outcome"]["device_cold_s"] |= {
        "places": None,
        "method": "CUPTI kernel stamps, L2 flushed by reading before each of 12 calls at 60 places in memory in graphs",
    }
    crashed = {"kind": "failure", "stage": "crash", "message": "CUDA error: misaligned address", "timing": None}
    second["outcome"] = crashed
    wrong = "changes an input without declaring it: x; the largest error is 812 times the allowed one"
    third["accuracy"] |= {"passed": False, "message": wrong}
    third["outcome"] = {"kind": "failure", "stage": "wrong", "message": wrong, "timing": third["outcome"]}
    return sealed(found)


def sealed(found: dict[str, Any]) -> dict[str, Any]:
    facts = [{k: v for k, v in r.items() if k != "trust"} for r in found["results"]]
    plan = found["plan"] | {"plugins": []}
    return found | {"digest": document.digest_of((plan, found["environment"], found["method"], facts))}


def check(run: Run) -> None:
    first, second, third = run.results[:3]
    assert first.conditions is not None
    assert first.conditions.notes == (
        TracingCostUnknown(),
        SlowBlocks(figure="warm", slow=3, blocks=30),
        ForeignNote(figure="energy", text="nobody knows"),
    )
    assert first.timing is not None
    assert first.timing.device_cold_s is not None
    assert first.timing.device_cold_s.buffers == 60
    assert second.outcome == Failure(stage="crash", reasons=(CudaError(),), message="misaligned address")
    assert isinstance(third.outcome, Failure)
    assert third.outcome.timing is not None
    assert third.accuracy is not None
    reasons = (MutatedInput(inputs=("x",)), ErrorTooLarge(of_bound=812.0))
    assert (third.outcome.reasons, third.accuracy.reasons, third.accuracy.message) == (reasons, reasons, "")
    told = {row.result.case.key: str(describe_outcome(row)) for row in rows(run, ())}
    assert told[second.case.key] == "✕ crashed: CUDA error: misaligned address"
    assert told[third.case.key].endswith("declaring it: x; the largest error is 812 times the allowed one")


def test_a_document_is_upgraded_and_its_digest_is_that_of_what_it_said() -> None:
    from kernelviz.formats.integrity import sealed as seal

    given = old()
    raw = json.dumps(given).encode()
    assert seal(raw) == "unchanged"
    run = decode(raw)
    assert run.schema == "kernelviz/2"
    check(run)
    check(read(raw)[0])
    given["results"][1]["outcome"]["message"] = "CUDA error: something else"
    assert seal(json.dumps(given)) == "changed", "the upgraded facts are not what counts"
    again = json.loads(encode(run))
    assert (again["schema"], seal(json.dumps(again))) == ("kernelviz/2", "unchanged")
    assert again["digest"] != old()["digest"]
    assert again["results"][1]["outcome"]["reasons"] == [{"code": "cuda_error"}]
    assert decode(json.dumps(again)) == run


def test_a_document_that_went_through_javascript_is_unchanged() -> None:
    from kernelviz.formats.integrity import sealed as seal

    def as_javascript(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, dict):
            return {k: as_javascript(v) for k, v in value.items()}
        return [as_javascript(v) for v in value] if isinstance(value, list) else value

    given = old()
    assert json.dumps(as_javascript(given)) != json.dumps(given)
    assert seal(json.dumps(as_javascript(given))) == "unchanged"
    given["results"][0]["conditions"]["notes"].pop()
    assert seal(json.dumps(as_javascript(given))) == "changed"


def test_the_upgrade_leaves_what_it_was_given_as_it_is() -> None:
    given = old()
    before = copy.deepcopy(given)
    document.of_values(given)
    assert given == before


def test_what_is_no_result_of_version_1_is_refused_with_its_place() -> None:
    for path, value in (("conditions", {"notes": [7]}), ("outcome", 3), ("accuracy", {"message": 5})):
        given = old()
        given["results"][0][path] = value
        with pytest.raises(DocumentError):
            decode(json.dumps(given))
    with pytest.raises(DocumentError):
        decode(json.dumps(old() | {"results": [3]}))
    with pytest.raises(DocumentError):
        decode(json.dumps(old() | {"results": 3}))


def test_a_parquet_file_of_version_1_is_upgraded_behind_its_digest() -> None:
    """As version 1 wrote it: the same file with the results and the digest of the old document."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    given = old()
    raw = exports()["parquet"].encode(decode(json.dumps(given)))
    table = pq.read_table(pa.BufferReader(raw))
    results = [{k: v for k, v in r.items() if k != "trust"} for r in given["results"]]
    header = {k: given[k] for k in ("schema", "id", "title", "created_at", "environment", "method", "plan")}
    header["digest"] = document.digest_of([header["plan"], header["environment"], header["method"], results])
    bare = []
    for result in copy.deepcopy(results):
        outcome = result["outcome"]
        timing = outcome.get("timing") if outcome["kind"] == "failure" else outcome
        for figure in (timing or {}).values():
            if isinstance(figure, dict) and figure.get("samples") is not None:
                del figure["samples"]
        bare.append(json.dumps(result))
    table = table.set_column(table.schema.get_field_index("result"), "result", pa.array(bare))

    def written(values: dict[str, Any]) -> bytes:
        out = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata({b"kernelviz": json.dumps(values).encode()}), out)
        return bytes(out.getvalue())

    check(read(written(header))[0])
    with pytest.raises(DocumentError, match="changed since it was written"):
        read(written(header | {"digest": "0" * 64}))


@pytest.mark.parametrize("pack", [zlib.compress, bytes], ids=["packed", "plain"])
def test_a_row_of_a_database_of_version_1_is_upgraded(pack: Any) -> None:
    given = old()
    run = decode(json.dumps(given))
    for result, expected in zip(given["results"][:3], run.results, strict=False):
        body = pack(json.dumps({k: v for k, v in result.items() if k != "trust"}).encode())
        assert unpacked(body) == expected
        assert unpacked(packed(expected)) == expected


def test_a_row_of_this_version_is_not_read_again_for_its_meaning() -> None:
    """If the text of an exception is a sentence of version 1, it remains the text of the exception."""
    run = decode(json.dumps(old()))
    foreign = msgspec.structs.replace(run.results[1], outcome=Failure(stage="crash", message="cancelled"))
    assert unpacked(packed(foreign)) == foreign


@pytest.mark.parametrize("results", [{}, {"0": 1}, 3, "x", None])
def test_results_that_are_no_list_are_refused_by_name(results: object) -> None:
    document = json.loads(gzip.decompress((earlier_runs.FOLDER / "h200-matmul.json.gz").read_bytes()))
    assert document["schema"] == "kernelviz/1"
    with pytest.raises(DocumentError) as refused:
        decode(json.dumps(document | {"results": results}))
    assert refused.value.path == "$.results"
