"""The bundle of Plotly that every page and every offline page uses: the traces that `kernelviz.plots` draws, and no others.

`source/build.mjs` makes it from pinned npm packages (docs/architecture.md, "Charts in a browser"). It is stored
compressed: as brotli for browsers that accept it, and as gzip for all others and for the offline page.
"""

import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files

TRACES = ("bar", "heatmap", "scatter")
"""The trace types in the bundle, as source/entry.js registers them."""
_VERSION = re.compile(r"plotly\.js v(\d+\.\d+\.\d+)")


@cache
def brotli() -> bytes:
    """The script, compressed with brotli."""
    return (files("kernelviz.formats.browser") / "plotly.min.js.br").read_bytes()


@cache
def gzipped() -> bytes:
    """The script, compressed with gzip."""
    return (files("kernelviz.formats.browser") / "plotly.min.js.gz").read_bytes()


def script() -> bytes:
    """The script, which defines the global variable `Plotly`."""
    return gzip.decompress(gzipped())


@cache
def digest() -> str:
    """SHA-256 of the script, as hexadecimal digits."""
    return hashlib.sha256(script()).hexdigest()


def version() -> str:
    """The version of plotly.js in the bundle, from its first line."""
    head = script()[:400].decode()
    match = _VERSION.search(head)
    if match is None:
        raise ValueError(f"the bundle does not start with the version of plotly.js: {head[:80]!r}")
    return match[1]


@cache
def chart_script() -> str:
    """The module that draws a chart by the bundle: selection, keyboard, theme, full screen, saved pictures, and the points as a
    table."""
    parts = ("chart_table.js", "chart_menu.js", "chart.js")
    return "\n".join((files("kernelviz.formats.browser") / part).read_text("utf-8") for part in parts)


@cache
def chart_style() -> str:
    """The style sheet of a chart and its buttons."""
    return (files("kernelviz.formats.browser") / "chart.css").read_text("utf-8")
