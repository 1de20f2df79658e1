"""When a run was measured: any text that a page can show, and no moment that breaks it."""

from __future__ import annotations

import json

import pytest
import sample_runs as samples

from kernelviz.core.errors import DocumentError
from kernelviz.formats import encode, read
from kernelviz.ui.shared.text import when

RUN = json.loads(encode(samples.run()))


@pytest.mark.parametrize("stamp", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_moment_that_utc_has_no_name_for_is_refused(stamp: str) -> None:
    with pytest.raises(DocumentError, match="write it as 2026-") as refused:
        read(json.dumps(RUN | {"created_at": stamp}))
    assert refused.value.path == "$.created_at"
    assert when(stamp) == stamp, "one that is stored already is shown as it stands"


@pytest.mark.parametrize("stamp", ["", "08/02/16-17:44:46", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00"])
def test_any_other_text_is_read_and_shown(stamp: str) -> None:
    (run,) = read(json.dumps(RUN | {"created_at": stamp}))
    assert run.created_at == stamp
    assert when(stamp)
