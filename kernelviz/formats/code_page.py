"""The code of a kernel, or of two, as one self-contained HTML page. It opens from a disk and loads nothing from a network.

Every text is escaped, or inside a packed view, which the script puts into the page as text only (browser/code_view.js). The
content security policy allows the page's two scripts by their hashes, and forbids loading anything else.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files

import kernelviz
from kernelviz.formats.browser import code_bundle
from kernelviz.formats.html import allowed


@dataclass(frozen=True, slots=True)
class CodePage:
    """What the page says. `rows`: of the table of facts, with these headings. `views`: name and packed content of each view that
    can be chosen (formats/code_view.py), the first of which is shown."""

    title: str
    sentences: Sequence[str]
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    views: Sequence[tuple[str, str]]


def page(content: CodePage) -> bytes:
    """The whole file, UTF-8."""
    script = f"{code_bundle.view_script()}\n{_part('code_page.js')}"
    style = f"{_part('page.css')}\n{_COLOURS}\n{code_bundle.view_style()}"
    library, library_hash = _library()
    policy = (
        f"default-src 'none'; script-src {allowed(script)} {library_hash}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )
    options = "".join(f"<option value={n}>{escape(name)}</option>" for n, (name, _) in enumerate(content.views))
    packed = "\n".join(
        f'<script type="text/plain" id="view-{n}">{view}</script>' for n, (_, view) in enumerate(content.views)
    )
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in content.sentences)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="generator" content="kernelviz {escape(kernelviz.__version__)}">
<title>{escape(content.title)} · kernelviz</title><style>{style}</style></head>
<body><header><h1>{escape(content.title)}</h1>{sentences}</header>
<main><p id="without" class="without" hidden>This browser cannot show the code (<span id="why"></span>).</p>
<noscript><p class="without">The code needs JavaScript.</p></noscript>
<div id="choice" class="choices" hidden><label>Text<select id="view">{options}</select></label></div>
<div id="code"></div>
<section><h2>Facts</h2>{_table(content)}</section></main>
<footer><p class="how">Made by kernelviz {escape(kernelviz.__version__)}; code shown by <a href="https://codemirror.net/">CodeMirror</a>
(MIT licence, © Marijn Haverbeke and others), which is inside the file. It loads nothing from anywhere.</p></footer>
{packed}
<script type="text/plain" id="codemirror">{library}</script>
<script type="module">{script}</script>
</body></html>
""".encode("utf-8", "replace")


def _table(content: CodePage) -> str:
    if not content.rows:
        return "<p>No fact is known.</p>"
    head = "".join(f"<th>{escape(heading)}" for heading in content.headings)
    body = "".join(
        f"<tr>{''.join(f'<td{_LONG if n == len(row) - 1 else str()}>{escape(cell)}' for n, cell in enumerate(row))}</tr>"
        for row in content.rows
    )
    return (
        "<div class=scroll tabindex=0 role=region aria-label=Facts><table><thead>"
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_LONG = " class=long"
_COLOURS = """
.code-box { height: min(46rem, 85vh); --code-ink: var(--ink); --code-paper: var(--page); --code-line: var(--line);
  --code-side: var(--box); --code-soft: var(--soft); --code-main: var(--main); --code-font: inherit;
  --code-mono: ui-monospace, "JetBrains Mono", "Source Code Pro", Menlo, Consolas, monospace; }
"""


@lru_cache(maxsize=2)
def _part(name: str) -> str:
    return (files("kernelviz.formats.offline") / name).read_text("utf-8")


@lru_cache(maxsize=1)
def _library() -> tuple[str, str]:
    """CodeMirror's script packed, and how a policy names it."""
    return b64encode(code_bundle.gzipped()).decode(), allowed(code_bundle.script().decode())
