"""The bundle of CodeMirror, and what the browser gets to show code by it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any, get_args

from kernelviz.core.code_listing import CodeLine, CodeListing, LineMark, ListingKind, SourceLine
from kernelviz.core.machine_code import ControlCodes
from kernelviz.formats import code_page, code_view
from kernelviz.formats.browser import code_bundle
from kernelviz.metrics.line_diff import line_diff

BUILD = Path(__file__).parents[2] / "kernelviz/formats/browser/source/code"


def unpacked(packed: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_bundle_has_the_pinned_versions_and_compiles_no_text_to_code() -> None:
    pins = json.loads((BUILD / "package.json").read_text())
    locked = json.loads((BUILD / "package-lock.json").read_text())["packages"]
    script = code_bundle.script().decode()
    for name, version in {**pins["dependencies"], **pins["devDependencies"]}.items():
        assert locked[f"node_modules/{name}"]["version"] == version, "not pinned"
        if name in pins["dependencies"]:
            assert f"{name} {version}" in script[:600], "build the bundle again"
    assert "new Function" not in script
    assert " eval(" not in script
    licences = (BUILD.parents[1] / "codemirror.min.js.licences.txt").read_text()
    assert all(f"{name} {version}" in licences for name, version in pins["dependencies"].items())


def test_the_view_uses_only_what_the_bundle_has_and_parses_nothing_as_html() -> None:
    entry = (BUILD / "entry.js").read_text()
    exported = set(entry.partition("globalThis.CodeMirror = {")[2].partition("}")[0].replace("\n", " ").split(","))
    names = {name.strip() for name in exported if name.strip()}
    view = code_bundle.view_script()
    assert all(name in view for name in names), "a name that nothing uses"
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"):
        assert forbidden not in view
    # Each mark of a line has a sign and a meaning there, and each language a reader.
    assert all(f"  {mark}: [" in view for mark in get_args(LineMark))
    languages = {code_view.language_of(kind, "nvrtc") for kind in get_args(ListingKind)} | {"python"}
    assert all(language in view for language in languages)


def test_numbers_stand_for_files_places_and_chains() -> None:
    inner, outer = SourceLine(file="b.cuh", line=7), SourceLine(file="a.cu", line=3)
    source = CodeListing(
        kind="source", files=("a.cu",), lines=(CodeLine(text="x", origins=(outer,), number=3), CodeLine(text=""))
    )
    control = ControlCodes(
        stall_cycles=4, yields=False, write_barrier=None, read_barrier=1, wait_barriers=(), reused_operands=()
    )
    sass = CodeListing(
        kind="sass",
        files=("b.cuh", "a.cu"),
        lines=(
            CodeLine(text="</script><b>", origins=(inner, outer), address=0, control=control, marks=("spill",), role=1),
            CodeLine(text="EXIT", origins=(inner, outer), address=16, control=control, role=1),
            CodeLine(text="NOP", address=32, control=control),
        ),
    )
    packed = code_view.panes((source, sass), {"source": "nvrtc", "sass": "nvrtc"}, control=True)
    assert set(packed) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    content = unpacked(packed)
    first, second = content["panes"]
    assert (content["files"], content["origins"]) == (["a.cu", "b.cuh"], [[0, 3], [1, 7]])
    assert [content["chains"][n] for n in second["chain"][:2]] == [[1, 0], [1, 0]]
    assert (first["chain"][1], second["chain"][2]) == (-1, -1)
    assert (first["language"], second["language"]) == ("cpp", "sass")
    assert (first["numbers"], second["numbers"]) == ([3, None], None)
    assert second["text"] == "</script><b>\nEXIT\nNOP"
    assert second["marks"] == [[0, "spill"]]
    assert second["loops"] == [[0, 1, ""]]
    assert second["control"][0] == " 4      r1"


def test_a_difference_has_the_changes_of_the_command() -> None:
    found = line_diff(["a", "b", "c"], ["a", "x", "c", "d"])
    content = unpacked(code_view.diff(found, ("A: one", "B: two"), "ptx", "triton"))
    assert content["changes"] == [[1, 2, 1, 2], [3, 3, 3, 4]]
    assert content["a"]["text"].split("\n") == ["a", "b", "c"]
    assert content["summary"] == "2 lines are equal, 1 is only in A, 2 are only in B."


def test_a_page_allows_its_own_scripts_only_and_escapes_every_text() -> None:
    found = line_diff(["</script><img src=x onerror=alert(1)>"], ["b"])
    view = code_view.diff(found, ("A", "B"), "sass", "nvrtc")
    evil = '"><script>alert(1)</script>'
    content = code_page.CodePage(evil, (evil,), (evil, "B"), ((evil, evil),), ((evil, view), ("PTX", view)))
    html = code_page.page(content).decode()
    assert "<script>" not in html
    assert "<img" not in html
    scripts = re.findall(r"<script type=\"module\">(.*?)</script>", html, re.DOTALL)
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)[0]
    assert len(scripts) == 1
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    allowed = [hashlib.sha256(script).digest() for script in (scripts[0].encode(), code_bundle.script())]
    assert hashes == [base64.b64encode(digest).decode() for digest in allowed]
    assert "default-src 'none'" in policy
    assert not re.search(r'(?:src|href)="(?!https://codemirror.net/")', html), "it loads nothing"
    assert set(re.findall(r'id="(view-\d)"', html)) == {"view-0", "view-1"}
