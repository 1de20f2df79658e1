"""Whether a document is unchanged since it was saved: its facts are compared with the digest that it contains."""

from typing import Any, Literal

import msgspec

from kernelviz.core import SCHEMA, DocumentError
from kernelviz.formats.document import decode, digest, digest_as_written, digest_of

_BOM = b"\xef\xbb\xbf"
Seal = Literal["unchanged", "changed", "unsealed"]
DESCRIPTIONS: dict[Seal, str] = {
    "unchanged": "unchanged since it was saved",
    "changed": "changed since it was saved: its digest does not match its facts",
    "unsealed": "without a digest, so whether it was changed is unknown",
}
"""This does not detect forgery: a person who changes facts can change the digest too. Compare with the sender's digest."""


class _Saved(msgspec.Struct):
    """A document as its writer knew it, fields that this version does not know among them."""

    plan: dict[str, Any]
    environment: dict[str, Any]
    method: dict[str, Any]
    results: list[dict[str, Any]]
    digest: str | None = None


def sealed(data: bytes | str) -> Seal | None:
    """Whether the digest in a document matches its facts; None for a file of another format, which has no digest.

    The fields of the file itself are tried first, so that a digest of a newer or older version matches too.
    """
    data = data.removeprefix("\ufeff") if isinstance(data, str) else data.removeprefix(_BOM)
    try:
        saved = msgspec.json.decode(data, type=_Saved)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if saved.digest is None:
        return "unsealed"
    results = [{k: v for k, v in result.items() if k != "trust"} for result in saved.results]
    as_written = digest_of((saved.plan | {"plugins": []}, saved.environment, saved.method, results))
    return "unchanged" if as_written == saved.digest or _as_read(data) == saved.digest else "changed"


def _as_read(data: bytes | str) -> str | None:
    """The digest of the run that this version reads: JavaScript writes 1.0 as 1, which is the same fact."""
    try:
        run, values = decode(data), msgspec.json.decode(data)
        return digest(run) if values["schema"] == SCHEMA else digest_as_written(values)
    except DocumentError:
        return None
