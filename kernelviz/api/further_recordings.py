"""The recorded runs and the code that are too large for the package."""

from __future__ import annotations

from kernelviz.bench import further_recordings as use_case
from kernelviz.bench.further_recordings import FurtherRecordings


def recordings() -> FurtherRecordings:
    """Whether the recorded runs and the code that are too large for the package are here.

    ``archive``: what the package says of them: ``url``, ``sha256``, ``size_bytes``, ``runs``, ``code_of`` (of how many recorded
    runs it has the code) and ``cards``; None if all recordings come with the package. ``folder``: where they are, None if they
    are not here. ``missing``: the archive, if it is offered and not here. ``fetched``: whether they were fetched. ``no_folder``:
    what KERNELVIZ_RECORDINGS names, if that is no folder that can be read.
    """
    return use_case.further_recordings()


def fetch_recordings(source: str | None = None) -> FurtherRecordings:
    """Fetch them once, compare their SHA-256 with that of the package, and unpack them in ``recordings`` of KERNELVIZ_HOME.

    source: a file, or an address with https or http; by default the address of this version. Nothing is sent but the request.
    Errors: NotFetched if they cannot be read, are another file, or cannot be written; BadField for a file that cannot be read.
    """
    return use_case.fetch(source)


def remove_recordings() -> bool:
    """Remove what was fetched; returns whether there was something. Errors: NotFetched if it cannot be removed."""
    return use_case.remove()
