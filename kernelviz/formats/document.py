"""The native document, ``kernelviz/2``: a run as JSON. Readers ignore fields that they do not know, migrate an older version,
and refuse a newer one."""

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args

import msgspec

from kernelviz.core import SCHEMA, Clock, DocumentError, Result, Run, version_1
from kernelviz.core.finite import finite_result
from kernelviz.formats.export_format import Export
from kernelviz.formats.import_format import MAX_BYTES, Import
from kernelviz.formats.validation import check
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.quality import quality
from kernelviz.text.quality import describe_quality

_FAMILY, _VERSION = SCHEMA.split("/")
Values = dict[str, Any]
"""A document as plain values: dictionaries, lists, texts and numbers."""


def _from_version_1(values: Values) -> Values:
    """Notes and failures were sentences."""
    results = values.get("results")
    if not isinstance(results, list):
        return values  # the decoder names the field
    return {**values, "results": [version_1.upgraded(r) if isinstance(r, dict) else r for r in results]}


MIGRATIONS: Mapping[int, Callable[[Values], Values]] = MappingProxyType({1: _from_version_1})
"""From which version: what makes a document of it one of the next version, without changing the given one. Version 1 is the first
there was."""


class _WrittenResult(Result, frozen=True, kw_only=True):
    """A result as it is written: with the trust line of both device times, derived anew and ignored by every reader."""

    quality: dict[str, str] = msgspec.field(name="trust")


class _WrittenRun(Run, frozen=True, kw_only=True):
    """A run as it is written: with its digest, which whoever opens the file can check (see formats.seal)."""

    results: tuple[_WrittenResult, ...]
    digest: str


class _Head(msgspec.Struct):
    schema: str


def encode(run: Run) -> bytes:
    """The run as JSON (UTF-8). What is not finite is null; see core.finite for figures.

    Errors: DocumentError with the field for a number that must be finite and is not (a method's budget, say).
    """
    return msgspec.json.encode(_with_derived_fields(_finite_run(run)))


def decode(data: bytes | str, *, most_bytes: int | None = MAX_BYTES) -> Run:
    """The run of a document; None reads one of any length. Errors: DocumentError with the path of the field, whatever the bytes
    are."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if most_bytes is not None and len(raw) > most_bytes:
        raise DocumentError(
            f"it has {len(raw) / 1e6:.1f} MB, documents of more than {most_bytes / 1e6:.0f} MB are not read; "
            "export fewer cases, or without their samples"
        )
    try:
        version = _version(msgspec.json.decode(raw, type=_Head).schema)
    except msgspec.ValidationError:
        raise DocumentError(
            f"this is JSON but no kernelviz document: it has no schema {SCHEMA!r}", path="$.schema"
        ) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise document_error(error) from None
    try:
        if version < int(_VERSION):
            return of_values(msgspec.json.decode(raw))
        run = msgspec.json.decode(raw, type=Run)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise document_error(error) from None
    check(run)
    return run


def of_values(values: Values) -> Run:
    """The run of a document as plain values, migrated where it is an older one. Errors: DocumentError as `decode`."""
    given = values.get("schema")
    version = _version(given if isinstance(given, str) else "")
    for older in range(version, int(_VERSION)):
        if older not in MIGRATIONS:
            raise DocumentError(
                f"it was written as {given}, which this kernelviz cannot read any more", path="$.schema"
            )
        try:
            values = MIGRATIONS[older](values)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DocumentError(
                f"it is no whole document of {_FAMILY}/{older} ({type(error).__name__}: {error})"
            ) from None
    try:
        run = msgspec.convert(values | {"schema": SCHEMA}, type=Run)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise document_error(error) from None
    check(run)
    return run


def values_of(run: Run) -> Values:
    """The document as plain values, without the trust lines, which readers do not know. Errors: as `encode`."""
    values: Values = msgspec.to_builtins(_finite_run(run))
    return values


def digest(run: Run) -> str:
    """SHA-256 (hex) over plan, environment, method and results: equal for equal facts, whatever title and note say.

    It is taken over JSON with sorted keys, so that a reader who knows no field of it finds the same. Left out are the plan's
    paths of plug-ins, which are files of one machine; results name the digest of the variant's source.
    """
    clean = _finite_run(run)
    plan = msgspec.structs.replace(clean.plan, plugins=())
    return digest_of((plan, clean.environment, clean.method, clean.results))


def digest_as_written(values: Values) -> str:
    """The digest of a document of an older version with every number as its writers wrote it, whatever program passed it on.

    Errors: DocumentError as `decode`.
    """
    run = of_values(values)
    written: Values = values_of(msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, plugins=())))
    results = [version_1.as_written(r, g) for r, g in zip(written["results"], values["results"], strict=True)]
    return digest_of((written["plan"], written["environment"], written["method"], results))


def digest_of(facts: object) -> str:
    """SHA-256 (hex) over the JSON of plan, environment, method and results, in this order, with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def _version(schema: str) -> int:
    """The version that a schema names. Errors: DocumentError for another family and for a version newer than this one's."""
    family, _, version = schema.partition("/")
    if family != _FAMILY or not version.isascii() or not version.isdecimal() or len(version) > 6:
        raise DocumentError(f"{schema[:80]!r} is no schema of kernelviz; {SCHEMA!r} is", path="$.schema")
    if int(version) > int(_VERSION):
        raise DocumentError(
            f"it was written by a newer kernelviz ({schema}); this one reads up to {SCHEMA}. Update kernelviz",
            path="$.schema",
        )
    return int(version)


def document_error(error: Exception) -> DocumentError:
    """What a decoder raised, with the path of the field that it names."""
    if isinstance(error, RecursionError):
        return DocumentError("it is nested too deeply")
    text = str(error)
    match = re.fullmatch(r"(.*?) - at `(.*)`", text, re.DOTALL)
    if match:
        return DocumentError(match.group(1), path=match.group(2))
    if isinstance(error, msgspec.ValidationError):  # of the outermost object, which has no path
        return DocumentError(f"it is no whole document: {text}")
    return DocumentError(f"it cannot be read as JSON ({text})")


def _finite_run(run: Run) -> Run:
    for path, number in _required(run):
        if not math.isfinite(number):
            raise DocumentError(f"{number} cannot be written; it must be a finite number", path=path)
    return msgspec.structs.replace(run, results=tuple(finite_result(r) for r in run.results))


def _with_derived_fields(run: Run) -> _WrittenRun:
    """The run with a trust line for each time. A derived field is told, never stored: `decode` and `digest` do not know it."""
    fields = {name: getattr(run, name) for name in Run.__struct_fields__}
    results = tuple(_with_quality(r, run.method.clock) for r in run.results)
    return _WrittenRun(**fields | {"results": results, "digest": digest(run)})


def _with_quality(result: Result, clock: Clock | None) -> _WrittenResult:
    qualities = {headline: quality(result, headline, clock) for headline in get_args(Headline)}
    fields = {name: getattr(result, name) for name in Result.__struct_fields__}
    return _WrittenResult(
        **fields, quality={name: str(describe_quality(q)) for name, q in qualities.items() if q is not None}
    )


def _required(run: Run) -> Iterator[tuple[str, float]]:
    """The numbers that are no quantities measured: null is no value for them."""
    for name in ("budget_s", "half_width", "ratio_half_width"):
        yield f"$.method.{name}", getattr(run.method, name)


EXPORT = Export(name="json", suffix=".json", media_type="application/json", encode=encode)
IMPORT = Import(
    name="json",
    label="kernelviz JSON",
    most_bytes=MAX_BYTES,
    recognises=lambda seen: "schema" in seen.keys,
    decode=lambda raw: (decode(raw),),
)
