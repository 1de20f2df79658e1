"""The folder of artifacts: bounded, the oldest that no run names go first, and no damage or full disk raises an error."""

from __future__ import annotations

import os
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import full_disk
import pytest
import sample_code as code
from msgspec.structs import replace

from kernelviz.core import CodeContent
from kernelviz.core.code import packed
from kernelviz.core.errors import BadField
from kernelviz.store import Store
from kernelviz.store.code_folder import VARIABLE, CodeFolder

KB = 1000


def content(number: int, size: int = 10 * KB) -> CodeContent:
    return packed(random.Random(number).randbytes(size))


def folder_of(path: Path, most_bytes: int, referenced: frozenset[str] = frozenset()) -> CodeFolder:
    return CodeFolder(path, lambda: referenced, most_bytes)


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_what_no_run_names_goes_first_and_of_that_the_oldest(tmp_path: Path) -> None:
    contents = [content(i) for i in range(12)]
    named = frozenset({contents[0].digest, contents[1].digest})
    folder = folder_of(tmp_path, 60 * KB, named)
    for age, one in enumerate(contents):
        folder.put([one])
        assert size_of(tmp_path) <= 60 * KB
        for path in tmp_path.rglob(f"{one.digest}.z"):
            os.utime(path, (1e9 + age, 1e9 + age))
    left = [i for i, one in enumerate(contents) if folder.has(one.digest)]
    assert left[:2] == [0, 1], "runs name them"
    assert left[-1] == 11
    assert left[2:] == list(range(left[2], 12)), "the oldest went first"
    # Where all are named, the folder stays bounded, too.
    full = folder_of(tmp_path, 20 * KB, frozenset(one.digest for one in contents))
    full.put([content(99)])
    assert size_of(tmp_path) <= 20 * KB
    assert full.has(content(99).digest)


def test_a_run_that_is_removed_no_longer_protects_its_code(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        run = code.run()
        store.runs.create(replace(run, code=()), replace(run, id="again", code=()))
        digests = {c.digest for c in run.code or ()}
        assert store.code._referenced() == digests
        store.runs.remove(run.id)
        assert store.code._referenced() == digests, "the other run names them"
        store.runs.remove("again")
        assert store.code._referenced() == frozenset()


def test_a_damaged_file_is_nothing_and_can_be_stored_again(tmp_path: Path) -> None:
    folder, one = folder_of(tmp_path, 10**6), content(1)
    for damage in (b"", b"x", one.zlib[:-3], one.zlib + b"more", content(2).zlib):
        folder.put([one])
        assert folder.get(one.digest) is not None
        (path,) = tmp_path.rglob("*.z")
        path.write_bytes(damage)
        assert folder.get(one.digest) is None
        assert not folder.has(one.digest)


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "0" * 63, "0" * 64 + "/", "A" * 64])
def test_only_a_digest_names_a_file(tmp_path: Path, digest: str) -> None:
    folder = folder_of(tmp_path / "code", 10**6)
    folder.put([CodeContent(digest=digest, zlib=b"")])
    assert folder.get(digest) is None
    assert list(tmp_path.rglob("*")) == []
    folder.put([replace(content(1), digest="0" * 64)])  # not the digest of this content
    assert not list(tmp_path.rglob("*.z"))
    assert folder.problem is not None


def test_the_limit_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    CodeFolder(tmp_path, frozenset).put([content(1)])
    assert not list(tmp_path.rglob("*.z"))
    monkeypatch.setenv(VARIABLE, "1 GB")
    with pytest.raises(BadField, match="whole number of bytes"):
        CodeFolder(tmp_path, frozenset)


def filled(home: Path) -> dict[str, Any]:
    """A result and its code on a disk that is full, and again when there is room."""
    with closing(Store.open(home)) as store:
        full_disk.fill()
        store.code.put([content(1)])
        answer = {"problem": store.code.problem, "parts": len(list((home / "code").rglob(".part*")))}
        full_disk.free()
        store.code.put([content(1)])
        return {**answer, "has": store.code.has(content(1).digest), "after": store.code.problem}


def test_a_full_disk_costs_the_code_and_nothing_else(tmp_path: Path) -> None:
    answer = full_disk.answers(filled, tmp_path)
    assert "too large" in answer["problem"].lower()  # EFBIG stands for the full disk here
    assert answer["parts"] == 0
    assert (answer["has"], answer["after"]) == (True, None)


def write_many(path: Path) -> str | None:
    """Store 40 different contents again and again, in a folder that has room for some of them."""
    folder = folder_of(path, 100 * KB)
    for number in range(150):
        folder.put([content(number % 40, (1 + number % 7) * KB)])
    return folder.problem


def test_processes_that_write_at_once_leave_whole_files(tmp_path: Path) -> None:
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            os._exit(write_many(tmp_path) is not None)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    folder = folder_of(tmp_path, 100_000)
    files = list(tmp_path.rglob("*.z"))
    assert files
    assert all(folder.get(path.stem) is not None for path in files)
    assert not list(tmp_path.rglob(".part*"))
