"""A page of the app as AppTest runs it, from the real entry script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart of a page: its key, and the figure that the browser gets."""

    key: str
    figure: dict[str, Any]


def charts(test: AppTest) -> list[DrawnChart]:
    """The charts of the page, in order."""
    found = []
    for element in test.get("bidi_component"):
        if element.proto.component_name == "kernelviz_chart":
            data = json.loads(element.proto.json)
            found.append(DrawnChart(element.key, json.loads(data["figure"])))
    return found
