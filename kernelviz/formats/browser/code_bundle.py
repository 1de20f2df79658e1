"""The bundle of CodeMirror that the page Code and its offline page use, and the script that shows code by it.

`source/code/build.mjs` makes it from pinned npm packages (docs/architecture.md, "Code in a browser"). It is stored compressed: as
brotli for browsers that accept it, and as gzip for all others and for the offline page.
"""

import gzip
from functools import cache
from importlib.resources import files


@cache
def brotli() -> bytes:
    """The script, compressed with brotli."""
    return (files("kernelviz.formats.browser") / "codemirror.min.js.br").read_bytes()


@cache
def gzipped() -> bytes:
    """The script, compressed with gzip."""
    return (files("kernelviz.formats.browser") / "codemirror.min.js.gz").read_bytes()


def script() -> bytes:
    """The script, which defines the global variable `CodeMirror`."""
    return gzip.decompress(gzipped())


@cache
def view_script() -> str:
    """The module that shows code by the bundle: panes with linked lines, and the difference of two texts."""
    parts = ("code_languages.js", "code_view.js")
    return "\n".join((files("kernelviz.formats.browser") / part).read_text("utf-8") for part in parts)


@cache
def view_style() -> str:
    """The style sheet of the panes."""
    return (files("kernelviz.formats.browser") / "code_view.css").read_text("utf-8")
