"""What holds for the whole Streamlit side: the entry file's shape, and what importing it does not load."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as texts
from markdown_it import MarkdownIt

from kernelviz.plots.variant_styles import COLOURS
from kernelviz.ui.shared.text import plain

ROOT = Path(__file__).parents[2]


def test_app_py_is_imports_and_one_literal_st_app() -> None:
    """Streamlit finds the app by reading this file, so the call must stand here as it is."""
    body = ast.parse((ROOT / "app.py").read_text()).body
    others = [n for n in body if not isinstance(n, ast.Import | ast.ImportFrom)]
    assert len(others) == 2
    docstring, assigned = others
    assert isinstance(docstring, ast.Expr)
    assert ast.unparse(assigned) == (
        "app = st.App(Path(kernelviz.__file__).parent / 'ui' / 'server' / 'main.py', lifespan=lifespan, routes=routes(), "
        "middleware=middleware())"
    )


def test_the_servers_process_loads_neither_torch_nor_triton() -> None:
    code = (
        "import sys, app, kernelviz.ui.bench.plan_form, kernelviz.ui.bench.charts\n"
        "import kernelviz.ui.shared.device_strip, kernelviz.ui.bench.empty_states\n"
        "from kernelviz.ops import catalogue; catalogue()\n"
        "print([m for m in ('torch', 'triton', 'plotly.express') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_the_theme_has_the_chart_colours_light_and_dark_and_they_are_the_charts_own() -> None:
    """Fewer than ten and Plotly drops them all."""
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert tuple(config["theme"]["chartCategoricalColors"]) == COLOURS
    assert {"light", "dark"} <= config["theme"].keys()
    assert config["server"]["address"] == "127.0.0.1"
    assert config["client"]["showErrorLinks"] is False


@given(texts.text())
def test_plain_text_stays_text_in_markdown(text: str) -> None:
    """No tag, emphasis, link or code comes out of text that came from a document."""
    for written in (f"x {plain(text)}", plain(text)):
        assert set(re.findall(r"</?([a-z0-9]+)", MarkdownIt().render(written))) <= {"p"}
