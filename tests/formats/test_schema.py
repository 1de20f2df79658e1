"""The published JSON Schema matches the types. Older documents are migrated, newer ones refused, unknown fields ignored."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import peers
import pytest
import sample_figures as figures
import sample_runs as samples
from read_here import read

from kernelviz.core.errors import DocumentError
from kernelviz.core.run import Run
from kernelviz.formats import decode, document, encode, parquet, schema, shipped_runs

PUBLISHED = Path(__file__).parents[2] / "docs" / "kernelviz-2.schema.json"
RUNS = (samples.mixed(), figures.run(), samples.run([]), shipped_runs.load("h200-matmul"), *read(peers.nvbench())[:3])


def test_the_published_schema_is_that_of_the_types() -> None:
    command = "python -m kernelviz.formats.schema > docs/kernelviz-2.schema.json"
    assert PUBLISHED.read_text(encoding="utf-8") == schema.text(), command


def validator() -> jsonschema.Draft202012Validator:
    found = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("run", RUNS, ids=lambda r: r.id)
def test_documents_are_valid_by_it(run: Run) -> None:
    assert [e.message for e in validator().iter_errors(json.loads(encode(run)))] == []


def change(found: dict[str, Any], path: str, value: Any) -> None:
    *ways, last = path.split("/")
    node: Any = found
    for way in ways:
        node = node[int(way) if way.isdigit() else way]
    node[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "kernelviz/3"),
        ("results/0/outcome/kind", "guess"),
        ("results/0/outcome/device_cold_s/estimate", "fast"),
        ("plan/problems/0/sizes", [1]),
        ("environment/device/kind", "tpu"),
        ("status", "done"),
    ],
)
def test_what_readers_refuse_is_invalid_by_it(path: str, value: Any) -> None:
    found = json.loads(encode(samples.mixed()))
    change(found, path, value)
    assert list(validator().iter_errors(found))
    with pytest.raises(DocumentError):
        decode(json.dumps(found))


def test_fields_that_nobody_knows_are_valid_and_ignored() -> None:
    found = json.loads(encode(samples.mixed()))
    found["later"] = {"deep": [1]}
    found["results"][0]["outcome"]["later_s"] = 1
    assert list(validator().iter_errors(found)) == []
    assert decode(json.dumps(found)) == samples.mixed()


def as_older(run: Run) -> dict[str, Any]:
    """A document of an invented version, in which problems were called questions and times were in microseconds."""
    found: dict[str, Any] = json.loads(encode(run))
    found["schema"] = "kernelviz/0"
    found["plan"]["questions"] = found["plan"].pop("problems")
    for result in found["results"]:
        cold = result["outcome"].get("device_cold_s")
        if cold is not None:
            result["outcome"]["device_cold_us"] = cold.pop("estimate") * 1e6
    return found


def from_older(found: dict[str, Any]) -> dict[str, Any]:
    found["plan"]["problems"] = found["plan"].pop("questions")
    for result in found["results"]:
        if "device_cold_us" in result["outcome"]:
            result["outcome"]["device_cold_s"]["estimate"] = result["outcome"].pop("device_cold_us") / 1e6
    return found


def test_an_older_document_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    older = json.dumps(as_older(samples.mixed())).encode()
    with pytest.raises(DocumentError, match="kernelviz/0, which this kernelviz cannot read any more"):
        decode(older)
    monkeypatch.setattr(document, "MIGRATIONS", MappingProxyType({**document.MIGRATIONS, 0: from_older}))
    found = read(older)[0]
    assert found.schema == "kernelviz/2"
    assert found.plan == samples.mixed().plan
    for ours, theirs in zip(found.results, samples.mixed().results, strict=True):
        assert ours.case == theirs.case
        if ours.timing and ours.timing.device_cold_s and theirs.timing and theirs.timing.device_cold_s:
            assert ours.timing.device_cold_s.estimate == pytest.approx(theirs.timing.device_cold_s.estimate)
    with pytest.raises(DocumentError, match="no whole document of kernelviz/0"):
        read(json.dumps(as_older(samples.mixed()) | {"plan": {}}))
    broken = as_older(samples.mixed())
    broken["plan"]["variants"] = []
    with pytest.raises(DocumentError, match="at least one variant"):
        read(json.dumps(broken))


def test_a_parquet_file_of_an_older_version_is_migrated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = parquet.encode(samples.mixed())
    assert raw.count(b'"schema":"kernelviz/2"') >= 1
    older = raw.replace(b'"schema":"kernelviz/2"', b'"schema":"kernelviz/0"')
    with pytest.raises(DocumentError, match="cannot read any more"):
        read(older)
    monkeypatch.setattr(document, "MIGRATIONS", MappingProxyType({**document.MIGRATIONS, 0: lambda found: found}))
    assert read(older) == (samples.mixed(),)


def test_a_newer_document_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        DocumentError, match=r"newer kernelviz \(kernelviz/7\); this one reads up to kernelviz/2. Update"
    ):
        read(json.dumps(json.loads(encode(samples.mixed())) | {"schema": "kernelviz/7"}))
