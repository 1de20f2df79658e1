"""What the tests of the measuring code run under."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelviz.measure.timing import host


@pytest.fixture(scope="module", autouse=True)
def caches_are_flushed_by_one_read() -> Iterator[None]:
    """Read the size of the last-level cache once before a call, not eight times: nearly all of what a measurement takes here.

    What is asserted of a time is that it is there and positive. tests/cli and tests/worker measure with the whole flush.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(host, "FLUSH_SHARE", 1)
        yield
