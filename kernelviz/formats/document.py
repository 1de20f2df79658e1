"""The native document, ``kernelviz/2``: a run as JSON. Readers ignore fields that they do not know, migrate an older version,
and refuse a newer one."""

import hashlib
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import msgspec

from kernelviz.core import SCHEMA, DocumentError, Run, version_1
from kernelviz.core.finite import finite_result
from kernelviz.formats.export_format import Export
from kernelviz.formats.import_format import MAX_BYTES, Import
from kernelviz.formats.validation import checked
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.quality import quality
from kernelviz.text import describe_quality

_FAMILY, _VERSION = SCHEMA.split("/")
T = TypeVar("T")
JSON_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
"""What msgspec raises for bytes that are not the JSON of a type."""
Values = dict[str, Any]
"""A document as plain values: dictionaries, lists, texts and numbers."""


def _from_version_1(values: Values) -> Values:
    """Version 2 with typed notes and failures; in version 1 they were sentences."""
    results = values.get("results")
    if not isinstance(results, list):
        return values  # the decoder names the field
    return {**values, "results": [version_1.upgraded(r) if isinstance(r, dict) else r for r in results]}


MIGRATIONS: Mapping[int, Callable[[Values], Values]] = MappingProxyType({1: _from_version_1})
"""By version: the function that makes a document of the next version, without changing the given one. Version 1 was the first."""


class _Head(msgspec.Struct):
    schema: str


def encode(run: Run) -> bytes:
    """The run as JSON (UTF-8). What is not finite is null; see core.finite for figures.

    For people, and ignored by readers: the measurement quality of both device times as text, and the digest of the run, which
    anybody who opens the file can check (formats.integrity).

    Errors: DocumentError with the field for a number that must be finite and is not (a method's budget, say).
    """
    run = finite_run(run)
    head: Values = msgspec.to_builtins(msgspec.structs.replace(run, results=()))
    del head["results"]
    out = io.BytesIO()
    out.write(msgspec.json.encode(head)[:-1] + b',"results":[')
    # One result at a time: as plain values, a run of 100,000 cases takes gigabytes.
    for number, result in enumerate(run.results):
        qualities = {headline: quality(result, headline, run.method.clock) for headline in get_args(Headline)}
        texts = {name: str(describe_quality(q)) for name, q in qualities.items() if q is not None}
        out.write((b"," if number else b"") + msgspec.json.encode(msgspec.to_builtins(result) | {"trust": texts}))
    out.write(b'],"digest":"' + digest(run).encode() + b'"}')
    return out.getvalue()


def decode(data: bytes | str, *, most_bytes: int | None = MAX_BYTES) -> Run:
    """The run of a document. `most_bytes`: None for no limit. Errors: DocumentError with the path of the field, for any bytes."""
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
    except JSON_ERRORS as error:
        raise document_error(error) from None
    return of_values(from_json(raw, Values)) if version < int(_VERSION) else checked(from_json(raw, Run))


def from_json(raw: bytes, type: type[T]) -> T:
    """JSON as that type. Errors: DocumentError with the path of the field."""
    try:
        return msgspec.json.decode(raw, type=type)
    except JSON_ERRORS as error:
        raise document_error(error) from None


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
    except JSON_ERRORS as error:
        raise document_error(error) from None
    return checked(run)


def values_of(run: Run) -> Values:
    """The document as plain values, without the trust lines, which readers do not know. Errors: as `encode`."""
    values: Values = msgspec.to_builtins(finite_run(run))
    return values


def digest(run: Run) -> str:
    """SHA-256 (hex) over plan, environment, method and results: equal for equal facts, independent of title and note.

    It is computed over JSON with sorted keys, so that a reader who knows none of the fields gets the same digest. The paths
    of plug-ins are left out, because they are files of one machine; results name the digest of the variant's source.
    """
    clean = finite_run(run)
    plan = msgspec.structs.replace(clean.plan, plugins=())
    return digest_of((plan, clean.environment, clean.method, clean.results))


def digest_as_written(values: Values) -> str:
    """The digest of a document of an older version, with every number as its writer wrote it.

    Errors: DocumentError as `decode`.
    """
    run = of_values(values)
    written: Values = values_of(msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, plugins=())))
    results = [version_1.as_written(r, g) for r, g in zip(written["results"], values["results"], strict=True)]
    return digest_of((written["plan"], written["environment"], written["method"], results))


def digest_of(facts: Sequence[object]) -> str:
    """SHA-256 (hex) over the JSON of plan, environment, method and results, in this order, with sorted keys."""
    *head, results = facts
    encoder = msgspec.json.Encoder(order="sorted")
    sha256 = hashlib.sha256(encoder.encode(head)[:-1] + b",")
    if isinstance(results, list | tuple):  # one result at a time, because together they are as long as the document
        sha256.update(b"[")
        for number, result in enumerate(results):
            sha256.update((b"," if number else b"") + encoder.encode(result))
        sha256.update(b"]")
    else:  # of a damaged file
        sha256.update(encoder.encode(results))
    sha256.update(b"]")
    return sha256.hexdigest()


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
    """The error of a decoder as a DocumentError, with the path of the field that it names."""
    if isinstance(error, RecursionError):
        return DocumentError("it is nested too deeply")
    match = re.fullmatch(r"(.*?) - at `(.*)`", str(error), re.DOTALL)
    if match:
        return DocumentError(match[1], path=match[2])
    if isinstance(error, msgspec.ValidationError):  # of the outermost object, which has no path
        return DocumentError(f"it is no whole document: {error}")
    return DocumentError(f"it cannot be read as JSON ({error})")


def finite_run(run: Run) -> Run:
    """The run with finite figures only. Errors: DocumentError for a setting that is not finite."""
    for name in (
        "budget_s",
        "half_width",
        "ratio_half_width",
    ):  # settings, not measured quantities, so they cannot be null
        number = getattr(run.method, name)
        if not math.isfinite(number):
            raise DocumentError(f"{number} cannot be written; it must be a finite number", path=f"$.method.{name}")
    return msgspec.structs.replace(run, results=tuple(finite_result(r) for r in run.results))


EXPORT = Export(
    name="json",
    suffix=".json",
    media_type="application/json",
    encode=encode,
    label="kernelviz JSON (.json)",
    holds_code=True,
)
IMPORT = Import(
    name="json",
    label="kernelviz JSON",
    most_bytes=MAX_BYTES,
    recognises=lambda seen: "schema" in seen.keys,
    decode=lambda raw: (decode(raw),),
)
