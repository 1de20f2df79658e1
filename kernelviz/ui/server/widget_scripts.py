"""The scripts of Streamlit's widgets that a page needs, named in its HTML page.

Streamlit loads the script of a widget when the first widget of that kind arrives, and then what this script imports, so a page
waits for several rounds of requests. If the HTML page names them, the browser loads and evaluates them while the server still
runs the page.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import streamlit

from kernelviz.ui.server import assets

_FOLDER = Path(streamlit.__file__).parent / "static"
_IMPORTED = re.compile(r"(?:from|import)\s*[`\"']\./([\w.-]+\.js)[`\"']")
_LINKED = re.compile(r"""static/js/([\w.-]+\.js)["']""")
_FORM = ("Button", "ButtonGroup", "Checkbox", "Metric", "NumberInput", "PageLink", "Selectbox", "TextInput")
_WIDGETS = {
    "bench": (*_FORM, "BidiComponent", "DataFrame"),
    "roofline": ("BidiComponent", "ButtonGroup", "DataFrame", "Multiselect", "Selectbox"),
    "code": ("BidiComponent", "Button", "ButtonGroup", "Checkbox", "DataFrame", "PageLink", "Selectbox"),
    "ladder": ("BidiComponent", "Button", "ButtonGroup", "CodeBlock", "PageLink", "Selectbox"),
    "autotune": (*(name for name in _FORM if name != "Metric"), "BidiComponent", "DataFrame"),
    "fusion": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "PageLink", "Selectbox"),
    "compare": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "Selectbox"),
    "gallery": ("Button", "Html", "ImageList", "PageLink", "Selectbox"),
    "claims": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "PageLink", "Selectbox"),
    "libraries": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "PageLink", "Selectbox"),
    "model": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "NumberInput", "PageLink", "Selectbox", "Slider"),
    "workloads": ("BidiComponent", "Button", "ButtonGroup", "DataFrame", "PageLink", "Selectbox"),
    "device": ("BidiComponent", "Button", "ButtonGroup", "Metric", "NumberInput"),
    "history": ("ButtonGroup", "PageLink", "TextInput"),
    "method": ("BidiComponent", "Button", "DataFrame"),
}
"""The names of Streamlit's scripts by page. A name that another version of Streamlit does not have is left out."""
_COMPONENTS = "BidiComponent"
_LIBRARIES = {"code": (assets.CODE, assets.CODEMIRROR)}
"""The script of the components of a page and the library that they use, where these are not charts and Plotly."""


@cache
def elements(page: str) -> str:
    """The elements for the head of a page's HTML, with paths relative to the page. `page`: its file name, "" for Bench."""
    wanted = _WIDGETS.get(page or "bench", ())
    entries = _entries(wanted)
    lines = [f'<link rel="modulepreload" crossorigin href="./static/js/{name}">' for name in _scripts(entries)]
    lines += [f'<script type="module" crossorigin src="./static/js/{name}"></script>' for name in entries]
    if _COMPONENTS in wanted:
        script, library = _LIBRARIES.get(page, (assets.CHART, assets.PLOTLY))
        lines.append(f'<script type="module" src="{assets.path(script)}"></script>')
        lines.append(f'<script async src="{assets.path(library)}"></script>')
    return "\n    ".join(lines)


def _entries(wanted: tuple[str, ...]) -> list[str]:
    """The files of these widgets."""
    names = {path.name.partition(".")[0]: path.name for path in (_FOLDER / "static" / "js").glob("*.js")}
    return [names[widget] for widget in wanted if widget in names]


def _scripts(entries: list[str]) -> list[str]:
    """These files and what they import, without the files that every page loads."""
    loaded = set(_LINKED.findall((_FOLDER / "index.html").read_text("utf-8")))
    return list(dict.fromkeys(name for entry in entries for name in _with_imports(entry, loaded)))


def _with_imports(name: str, seen: set[str]) -> Iterator[str]:
    """The script and all that it imports, in the order of the files; adds them to `seen` and leaves out what is in it."""
    if name in seen:
        return
    seen.add(name)
    yield name
    for imported in _imports(name):
        yield from _with_imports(imported, seen)


@cache
def _imports(name: str) -> tuple[str, ...]:
    path = _FOLDER / "static" / "js" / name
    return tuple(_IMPORTED.findall(path.read_text("utf-8"))) if path.is_file() else ()
