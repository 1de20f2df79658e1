"""The native document: what goes in comes out, and whatever the bytes are, the answer is a run or a DocumentError."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
import sample_runs as samples
from drawn_runs import finite, runs
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelviz.core.errors import DocumentError
from kernelviz.core.problem import Method
from kernelviz.core.result import Accuracy, Block, Failure, Figure, Timing
from kernelviz.core.run import Run
from kernelviz.formats import MAX_BYTES, decode, digest, encode


@settings(deadline=None, max_examples=60)
@given(runs)
def test_round_trip(run: Run) -> None:
    assert decode(encode(run)) == run
    assert digest(decode(encode(run))) == digest(run)


SAMPLE = samples.run([samples.timed(samples.run([]).plan.problems[0], "torch_eager", 0.5)])
PLAIN = json.loads(encode(SAMPLE))


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(p for key, inner in items for p in paths(inner, (*at, key)))]


def read(data: bytes | str) -> Run | DocumentError:
    """The run or the error; any other exception is the test's failure."""
    try:
        return decode(data)
    except DocumentError as error:
        return error


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(paths(PLAIN)), junk)
def test_a_changed_field_is_named_or_read(where: tuple[Any, ...], value: Any) -> None:
    document = json.loads(json.dumps(PLAIN))
    if not where:
        document = value
    else:
        inner = document
        for key in where[:-1]:
            inner = inner[key]
        inner[where[-1]] = value
    found = read(json.dumps(document).encode())
    if isinstance(found, Run):
        assert decode(encode(found)) == found
    else:
        assert found.path.startswith("$")


@settings(deadline=None, max_examples=150)
@given(st.binary(max_size=200) | st.text(max_size=50), st.integers(0, 3000), st.booleans())
def test_no_bytes_raise_anything_else(data: bytes | str, at: int, inside: bool) -> None:
    whole = encode(SAMPLE)
    if inside:
        raw = data if isinstance(data, bytes) else data.encode()
        data = whole[:at] + raw + whole[at + len(raw) :]
    assert isinstance(read(data), Run | DocumentError)


def test_unknown_fields_are_ignored() -> None:
    document = json.loads(encode(SAMPLE))
    document["future"] = {"nested": [1, 2]}
    document["results"][0]["outcome"]["new_s"] = None
    assert decode(json.dumps(document)) == SAMPLE


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"schema": "kernelviz/3"}, "$.schema", "newer kernelviz"),
        ({"schema": "something/1"}, "$.schema", "no schema of kernelviz"),
        ({"schema": 1}, "$.schema", "no kernelviz document"),
        ({"results": [{"problem": 1}]}, "$.results[0].problem", "Expected `object`"),
        ({"plan": {**PLAIN["plan"], "problems": []}}, "$.plan.problems", "at least one problem"),
        ({"plan": {**PLAIN["plan"], "variants": []}}, "$.plan.variants", "at least one variant"),
    ],
)
def test_faults_name_their_field(change: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        decode(json.dumps({**PLAIN, **change}))
    assert caught.value.path == path
    assert words in str(caught.value)


def test_sizes_are_sizes() -> None:
    document = json.loads(encode(SAMPLE))
    axis = next(iter(document["plan"]["problems"][0]["sizes"]))
    document["plan"]["problems"][0]["sizes"][axis] = -4
    with pytest.raises(DocumentError, match="no size") as caught:
        decode(json.dumps(document))
    assert caught.value.path == f"$.plan.problems[0].sizes.{axis}"


def with_cold_field(name: str, value: Any) -> str:
    document = json.loads(encode(SAMPLE))
    document["results"][0]["outcome"]["device_cold_s"][name] = value
    return json.dumps(document)


def test_a_document_from_before_places_had_a_field_is_read() -> None:
    document = json.loads(encode(SAMPLE))
    del document["results"][0]["outcome"]["device_cold_s"]["places"]
    assert decode(json.dumps(document)) == SAMPLE


@pytest.mark.parametrize("count", [0, -1, 10**400])
def test_a_call_lies_at_one_place_at_least_and_not_at_endless_many(count: int) -> None:
    with pytest.raises(DocumentError, match="outside 1 to") as caught:
        decode(with_cold_field("places", count))
    assert caught.value.path == "$.results[0].outcome.device_cold_s.places"


@pytest.mark.parametrize("number", [-1, 2**63, 10**400], ids=["negative", "2^63", "no float"])
def test_each_whole_number_of_a_device_is_one_that_a_device_can_have(number: int) -> None:
    device = samples.mixed().environment.device
    whole = [f.name for f in msgspec.structs.fields(device) if f.type in (int | None, int)]
    assert {"memory_bytes", "last_level_cache_bytes", "multiprocessors", "threads"} <= set(whole)
    for name, value in [*((name, number) for name in whole), ("compute_capability", [9, number])]:
        tree = json.loads(encode(samples.mixed()))
        tree["environment"]["device"][name] = value
        with pytest.raises(DocumentError) as caught:
            decode(json.dumps(tree).encode())
        assert caught.value.path == f"$.environment.device.{name}"


def test_large_and_deep_documents_are_refused() -> None:
    with pytest.raises(DocumentError, match="MB"):
        decode(b" " * (MAX_BYTES + 1))
    with pytest.raises(DocumentError):
        decode(b'{"schema": "kernelviz/1", "x": ' + b"[" * 100_000)


def test_what_is_not_finite_becomes_null_and_is_counted() -> None:
    bad = Figure(estimate=1.0, low=-math.inf, samples=(1.0, math.nan, math.inf), blocks=(Block(size=3, started_s=0.0),))
    timing = Timing(device_cold_s=bad, device_warm_s=Figure(estimate=math.nan), other_times={"x": bad})
    accuracy = Accuracy(passed=False, relative_l2=math.inf, max_abs=math.nan, worst_of_bound=1.0, not_finite=7)
    outcome = Failure(stage="wrong", message="", timing=timing)
    result = msgspec.structs.replace(SAMPLE.results[0], outcome=outcome, accuracy=accuracy)
    raw = encode(msgspec.structs.replace(SAMPLE, results=(result,)))
    assert b"NaN" not in raw
    assert b"Infinity" not in raw
    found = decode(raw).results[0]
    assert isinstance(found.outcome, Failure)
    (written,) = json.loads(raw)["results"]
    assert "nan" not in json.dumps(written["trust"])  # of what is written, not of what was given
    kept = Figure(estimate=1.0, method="2 of 3 samples not finite")
    assert found.outcome.timing == Timing(device_cold_s=kept, other_times={"x": kept})
    assert found.accuracy == Accuracy(passed=False, relative_l2=None, max_abs=None, worst_of_bound=1.0, not_finite=7)


def test_a_method_that_is_not_finite_cannot_be_written() -> None:
    with pytest.raises(DocumentError) as caught:
        encode(msgspec.structs.replace(SAMPLE, method=Method(budget_s=math.inf)))
    assert caught.value.path == "$.method.budget_s"


def test_the_digest_is_of_the_facts() -> None:
    words = msgspec.structs.replace(SAMPLE, title="another", note="why", status="interrupted")
    assert digest(words) == digest(SAMPLE)
    assert len(digest(SAMPLE)) == 64
    for changed in (
        {"results": ()},
        {"method": Method(budget_s=2.0)},
        {"environment": msgspec.structs.replace(SAMPLE.environment, host="other")},
        {"plan": msgspec.structs.replace(SAMPLE.plan, baseline="other")},
    ):
        assert digest(msgspec.structs.replace(SAMPLE, **changed)) != digest(SAMPLE)
