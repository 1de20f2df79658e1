"""Code in documents: it survives each format that holds it, costs old documents nothing, and is refused where it is not sound."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import earlier_runs
import msgspec
import pytest
import sample_code as code
import sample_runs as samples
from msgspec.structs import replace

from kernelviz.bench import recording
from kernelviz.core import DocumentError
from kernelviz.core.code import MOST_ARTIFACT_BYTES, digest_of, unpacked
from kernelviz.formats import compact, document, exports, integrity, read, shipped_runs
from kernelviz.metrics.part_of_run import part_of_run

RUN = code.run()
HELD = {content.digest: unpacked(content) for content in RUN.code or ()}


def test_each_format_that_holds_code_gives_it_back() -> None:
    holding = [name for name, form in exports().items() if form.holds_code]
    assert holding == ["json", "parquet"]
    for name in holding:
        assert read(exports()[name].encode(RUN)) == (RUN,), name
    packed = compact.encode(RUN)
    assert compact.code_of(packed) == HELD
    assert compact.code_digests(packed) == set(HELD)
    decoded = compact.decode(packed)
    assert not decoded.code
    assert [r.code for r in decoded.results] == [r.code for r in RUN.results]
    assert compact.code_of(compact.encode(replace(RUN, code=()))) == {}


def test_the_digest_covers_what_results_name_and_not_the_contents() -> None:
    without = replace(RUN, code=msgspec.UNSET)
    assert document.digest(without) == document.digest(RUN)
    assert integrity.sealed(document.encode(RUN)) == "unchanged"
    assert integrity.sealed(document.encode(without)) == "unchanged"
    other = replace(RUN.results[3], code=())
    changed = replace(RUN, results=(*RUN.results[:3], other, *RUN.results[4:]))
    assert document.digest(changed) != document.digest(RUN)
    bare = replace(RUN, results=tuple(replace(r, code=msgspec.UNSET) for r in RUN.results), code=msgspec.UNSET)
    written = json.loads(document.encode(bare))
    assert "code" not in written
    assert not any("code" in result for result in written["results"])


def test_documents_without_code_have_the_digests_that_they_had_before_it() -> None:
    packed = (earlier_runs.FOLDER / "h200-add.json.gz").read_bytes()
    assert integrity.sealed(gzip.decompress(packed)) == "unchanged"
    # As the version before computed it (commit a528e61).
    before = "c082a090e78bff972cef670a179c2a3cf2b009ca3f567d2081cecbaa1e384ffd"
    assert document.digest(samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32")) == before
    assert shipped_runs.code("h100-80gb-hbm3-add") == {}
    assert shipped_runs.code_digests("h100-80gb-hbm3-add") == frozenset()


def test_a_part_of_a_run_has_the_code_of_its_cases() -> None:
    part = part_of_run(RUN, (code.MINE,), RUN.plan.problems)
    assert {c.digest for c in part.code or ()} == {digest_of(c) for c in code.PLUGIN.values()}


Change = Callable[[dict[str, Any]], object]


def _code(values: dict[str, Any]) -> dict[str, Any]:
    """The first description in the document."""
    described: dict[str, Any] = next(r["code"][0] for r in values["results"] if "code" in r)
    return described


def _bomb(values: dict[str, Any]) -> None:
    values["code"][0]["zlib"] = _base64(zlib.compress(b"\0" * (MOST_ARTIFACT_BYTES + 1)))


def _base64(data: bytes) -> str:
    return str(msgspec.to_builtins(data))


HOSTILE: list[tuple[str, Change, str]] = [
    ("bomb", _bomb, r"^\$\.code\[0\]\.zlib: its content has more than 8,388,608 bytes"),
    ("edited", lambda v: v["code"][0].update(zlib=v["code"][1]["zlib"]), r"^\$\.code\[0\]\.zlib: .*not what its digest"),
    ("cut", lambda v: v["code"][0].update(zlib=_base64(zlib.compress(code.PTX.encode())[:-4])), "cut off"),
    ("no zlib", lambda v: v["code"][0].update(zlib=_base64(b"PTX")), "cannot be unpacked"),
    ("twice", lambda v: v["code"].append(v["code"][0]), r"^\$\.code\[5\]\.digest: .*twice"),
    ("unnamed", lambda v: v["code"].append({"digest": "0" * 64, "zlib": ""}), r"^\$\.code\[5\]\.digest: no result names"),
    ("path", lambda v: _code(v)["artifacts"][0].update(digest="../../x"), r"artifacts\[0\]\.digest: a digest is"),
    ("size", lambda v: _code(v)["artifacts"][0].update(size_bytes=3), "another size elsewhere|a result states 3"),
    ("large", lambda v: _code(v)["artifacts"][0].update(size_bytes=10**30), r"size_bytes: "),
    ("many", lambda v: _code(v).update(artifacts=_code(v)["artifacts"] * 100), "300 artifacts; at most 128"),
    ("macros", lambda v: _code(v).update(defines={str(i): "" for i in range(201)}), "201 macros"),
    ("text", lambda v: _code(v).update(kernel="k" * 2001), "2,001 characters"),
    ("warps", lambda v: _code(v).update(warps=-1), "warps"),
    ("kind", lambda v: _code(v)["artifacts"][0].update(kind="exe"), "Invalid enum value"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [(c, m) for _, c, m in HOSTILE], ids=[name for name, _, _ in HOSTILE])
def test_code_that_is_not_sound_is_refused_with_the_path_of_the_field(change: Change, message: str) -> None:
    values = json.loads(document.encode(RUN))
    change(values)
    with pytest.raises(DocumentError, match=message):
        read(json.dumps(values))


def test_a_damaged_compact_file_is_refused() -> None:
    packed = compact.encode(RUN)
    with pytest.raises(DocumentError, match="code"):
        compact.code_of(packed[:-20])


def test_a_recorded_run_holds_its_code(tmp_path: Path) -> None:
    recording.write(RUN, "recorded", tmp_path)
    data = (tmp_path / "recorded.kvz").read_bytes()
    assert compact.code_of(data) == HELD
    assert shipped_runs.load_from(tmp_path, "recorded").id == "recorded"
