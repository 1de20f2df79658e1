"""The native document, ``kernelviz/1``: a run as JSON. Readers ignore fields that they do not know."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from typing import get_args

import msgspec

from kernelviz.core.errors import DocumentError
from kernelviz.core.finite import finite_result
from kernelviz.core.problem import Clock
from kernelviz.core.result import Result
from kernelviz.core.run import SCHEMA, Run
from kernelviz.formats.check import check
from kernelviz.formats.export import Export
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.trust import trust

MAX_BYTES = 160 * 2**20
"""Larger documents are not read. A run of 1,000 cases with all their figures and samples has about 120 MB."""

_FAMILY, _VERSION = SCHEMA.split("/")


class _TrustedResult(Result, frozen=True, kw_only=True):
    """A result as it is written: with the trust line of both device times, derived anew and ignored by every reader."""

    trust: dict[str, str]


class _TrustedRun(Run, frozen=True, kw_only=True):
    """A run as it is written."""

    results: tuple[_TrustedResult, ...]


class _Head(msgspec.Struct):
    schema: str


def encode(run: Run) -> bytes:
    """The run as JSON (UTF-8). What is not finite is null; see core.finite for figures.

    Errors: DocumentError with the field for a number that must be finite and is not (a method's budget, say).
    """
    return msgspec.json.encode(_with_trust(_finite_run(run)))


def decode(data: bytes | str) -> Run:
    """The run of a document. Errors: DocumentError with the path of the field, whatever the bytes are."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > MAX_BYTES:
        raise DocumentError(
            f"it has {len(raw) / 1e6:.1f} MB, documents of more than {MAX_BYTES / 1e6:.0f} MB are not read; "
            "export fewer cases, or without their samples"
        )
    _check_schema(raw)
    try:
        run = msgspec.json.decode(raw, type=Run)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _document_error(error) from None
    check(run)
    return run


def digest(run: Run) -> str:
    """SHA-256 (hex) over plan, environment, method and results: equal for equal facts, whatever title and note say."""
    clean = _finite_run(run)
    facts = (clean.plan, clean.environment, clean.method, clean.results)
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()


def _check_schema(raw: bytes) -> None:
    try:
        schema = msgspec.json.decode(raw, type=_Head).schema
    except msgspec.ValidationError:
        raise DocumentError(
            f"this is JSON but no kernelviz document: it has no schema {SCHEMA!r}", path="$.schema"
        ) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _document_error(error) from None
    family, _, version = schema.partition("/")
    if family != _FAMILY or not version.isascii() or not version.isdecimal() or len(version) > 6:
        raise DocumentError(f"{schema[:80]!r} is no schema of kernelviz; {SCHEMA!r} is", path="$.schema")
    if int(version) > int(_VERSION):
        raise DocumentError(
            f"it was written by a newer kernelviz ({schema}); this one reads up to {SCHEMA}. Update kernelviz",
            path="$.schema",
        )


def _document_error(error: Exception) -> DocumentError:
    if isinstance(error, RecursionError):
        return DocumentError("it is nested too deeply")
    text = str(error)
    found = re.fullmatch(r"(.*?) - at `(.*)`", text, re.DOTALL)
    if found:
        return DocumentError(found.group(1), path=found.group(2))
    if isinstance(error, msgspec.ValidationError):  # of the outermost object, which has no path
        return DocumentError(f"it is no whole document: {text}")
    return DocumentError(f"it cannot be read as JSON ({text})")


def _finite_run(run: Run) -> Run:
    for path, number in _required(run):
        if not math.isfinite(number):
            raise DocumentError(f"{number} cannot be written; it must be a finite number", path=path)
    return msgspec.structs.replace(run, results=tuple(finite_result(r) for r in run.results))


def _with_trust(run: Run) -> _TrustedRun:
    """The run with a trust line for each time. A derived field is told, never stored: `decode` and `digest` do not know it."""
    fields = {name: getattr(run, name) for name in Run.__struct_fields__}
    return _TrustedRun(**fields | {"results": tuple(_trusted(r, run.method.clock) for r in run.results)})


def _trusted(result: Result, clock: Clock) -> _TrustedResult:
    found = {headline: trust(result, headline, clock) for headline in get_args(Headline)}
    fields = {name: getattr(result, name) for name in Result.__struct_fields__}
    return _TrustedResult(**fields, trust={name: t.line for name, t in found.items() if t is not None})


def _required(run: Run) -> Iterator[tuple[str, float]]:
    """The numbers that are no quantities measured: null is no value for them."""
    for name in ("budget_s", "half_width", "ratio_half_width"):
        yield f"$.method.{name}", getattr(run.method, name)


EXPORT = Export(name="json", suffix=".json", media_type="application/json", encode=encode)
