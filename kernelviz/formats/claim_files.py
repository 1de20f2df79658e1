"""The files of published claims: ``kernelviz/published_claims/*.toml``, read and checked. An error names the file and the row."""

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

import msgspec

from kernelviz.core import DocumentError
from kernelviz.core.claim import (
    ArithmeticTest,
    Claim,
    ClaimCollection,
    ClaimSource,
    ClaimTest,
    ClaimUnit,
    Contradiction,
    DataSheetTest,
    Entry,
    MemoryTest,
    RatioTest,
    RoofTest,
    TimeTest,
    WorkloadTest,
)

_E = TypeVar("_E", bound=Entry)
_UNITS: Mapping[type[ClaimTest], tuple[ClaimUnit, ...]] = {
    TimeTest: ("s", "flop/s", "B/s", "1/s"),
    RatioTest: ("x",),
    MemoryTest: ("B",),
    DataSheetTest: ("B/s", "flop/s"),
    RoofTest: ("B/s", "flop/s"),
}
"""The units that a test can give. Arithmetic can give any."""
_TABLES: Mapping[str, type[Entry]] = {"source": ClaimSource, "claim": Claim, "contradiction": Contradiction}


@lru_cache(maxsize=1)
def shipped_claims() -> ClaimCollection:
    """The claims that come with the package. Errors: DocumentError."""
    folder = files("kernelviz") / "published_claims"
    listed: list[Traversable] = sorted(folder.iterdir(), key=lambda file: file.name)
    return read_claims({file.name: file.read_text(encoding="utf-8") for file in listed if file.name.endswith(".toml")})


def read_claims(texts: Mapping[str, str]) -> ClaimCollection:
    """The entries of several files together, by file name. Errors: DocumentError whose path names the file and the row."""
    sources: list[ClaimSource] = []
    claims: list[Claim] = []
    contradictions: list[Contradiction] = []
    for name, text in texts.items():
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DocumentError(f"it is not TOML ({error})", path=name) from None
        unknown = tables.keys() - _TABLES.keys()
        if unknown:
            raise DocumentError(f"no table [[{min(unknown)}]]; there are {', '.join(_TABLES)}", path=name)
        sources += _entries(tables.get("source", []), ClaimSource, name, "source", "name")
        claims += _entries(tables.get("claim", []), Claim, name, "claim", "id")
        contradictions += _entries(tables.get("contradiction", []), Contradiction, name, "contradiction", "source")
    collection = ClaimCollection(sources=tuple(sources), claims=tuple(claims), contradictions=tuple(contradictions))
    _check(collection)
    return collection


def _entries(rows: object, of: type[_E], file: str, table: str, key: str) -> list[_E]:
    if not isinstance(rows, list):
        raise DocumentError(f"write [[{table}]] instead of [{table}]", path=file)
    return [_entry(row, of, f"{file}: {table} {number} ({_name(row, key)})") for number, row in enumerate(rows, 1)]


def _name(row: object, key: str) -> str:
    return str(row.get(key, f"without {key}")) if isinstance(row, dict) else "no table"


def _entry(row: Any, of: type[_E], path: str) -> _E:
    try:
        return msgspec.convert(row, of)
    except msgspec.ValidationError as error:
        raise DocumentError(str(error), path=path) from None


def _check(collection: ClaimCollection) -> None:
    """What the types do not say. Errors: DocumentError with the row."""
    for what, names in (
        ("source", [s.name for s in collection.sources]),
        ("claim", [c.id for c in collection.claims]),
    ):
        _each_once(what, names)
    known = {s.name for s in collection.sources}
    ids = {c.id for c in collection.claims}
    for claim in collection.claims:
        reason = _reason_against(claim, known)
        if reason is not None:
            raise DocumentError(reason, path=f"claim {claim.id!r}")
    for number, one in enumerate(collection.contradictions, 1):
        missing = [i for i in one.claims if i not in ids]
        if one.source not in known or missing:
            reason = f"no claim {missing[0]!r}" if missing else f"no source {one.source!r}"
            raise DocumentError(reason, path=f"contradiction {number} of {one.source!r}")


def _each_once(what: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DocumentError("this name is used twice; each needs one of its own", path=f"{what} {twice[0]!r}")


def _reason_against(claim: Claim, sources: set[str]) -> str | None:
    """Why a claim cannot be used; None if it can."""
    published, test = claim.published, claim.test
    if claim.source not in sources:
        return f"no source {claim.source!r}; there are {', '.join(sorted(sources))}"
    if not (math.isfinite(published.value) and published.value > 0):
        return f"published.value {published.value:g}: give a number above 0, in SI base units"
    if published.rounded_to is not None and not 0 < published.rounded_to <= published.value:
        return f"published.rounded_to {published.rounded_to:g}: give a step above 0 and at most the value"
    allowed = _UNITS.get(type(test))
    if allowed is not None and published.unit not in allowed:
        return f"published.unit {published.unit!r}: its test gives {' or '.join(allowed)}"
    if any(case.figure == "energy" for case in claim.cases):
        return "figure 'energy': a claim is about a time; use cold, warm, call, graph or loop"
    if published.unit == "1/s" and any("n" not in case.sizes for case in claim.cases):
        return "published.unit '1/s': elements are counted by axis n, which its case does not have"
    if isinstance(test, WorkloadTest) and test.over is not None:
        if published.unit != "x":
            return f"published.unit {published.unit!r}: two cases of a workload give x"
        if (test.over.workload, test.over.values, test.over.figure) != (
            test.case.workload,
            test.case.values,
            test.case.figure,
        ):
            return "test.over: it differs from test.case in more than its variant"
    if isinstance(test, RatioTest) and not test.over:
        return "test.over: name at least one case to compare with"
    if claim.direction == "above" and not isinstance(test, RatioTest):
        return "direction 'above': only a ratio of two cases has a verdict without a number; use at_least"
    if claim.scaled_by is not None and (not isinstance(test, TimeTest | RoofTest) or claim.published_on is None):
        return "scaled_by: only a time or rate of a named card (published_on) can be converted to another card"
    if isinstance(test, RoofTest) and (published.unit == "flop/s") is not (
        test.roof == "mma" and test.precision is not None
    ):
        return "test.roof: read gives B/s, and mma with a precision gives flop/s"
    if isinstance(test, ArithmeticTest) and any(q.value == 0 for q in test.over):
        return "test.over: a divisor is 0"
    return None
