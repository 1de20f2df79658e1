"""A page of the app as AppTest runs it, from the real entry script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streamlit.testing.v1 import AppTest

import kernelviz
from kernelviz.ui.shared.site import pages_folder

MAIN = Path(kernelviz.__file__).parent / "ui" / "server" / "main.py"


def open_page(params: Mapping[str, str], name: str = "bench", *, state: Mapping[str, object] | None = None) -> AppTest:
    """The page of that name at an address with these parameters, run once; a script that raised fails the test."""
    test = AppTest.from_file(MAIN, default_timeout=30)
    if name != "bench":
        test.switch_page(str(pages_folder() / f"{name}.py"))
    test.query_params.update(params)
    for key, value in (state or {}).items():
        test.session_state[key] = value
    test.run()
    assert not test.exception, test.exception
    return test
