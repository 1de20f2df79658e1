"""Artifacts have names instead of folders: the same digest wherever the source is, and line numbers that nvdisasm can read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelviz.core.code import digest_of
from kernelviz.machine_code.cubin import read_cubin
from kernelviz.machine_code.tools import tool_paths
from kernelviz.measure.compiled_code.folder_names import FolderNames, known_folders
from kernelviz.measure.compiled_code.line_tables import NotRewritable, with_line_tables
from kernelviz.ops.kernels import nvrtc

OPS = Path(nvrtc.__file__).parents[1]
DEFINES = {"ELEMENT": "float", "COMBINE": "plus"}


def test_the_longest_folder_wins_and_parts_of_names_are_left_alone() -> None:
    names = FolderNames({"/home/ann": "~", "/home/ann/env/site-packages": "site-packages", "/": "root", "/tmp": "tmp"})

    def text(content: str) -> str:
        return names.applied("source", content.encode()).decode()

    assert text('f("/home/ann/env/site-packages/triton/x.py")') == 'f("site-packages/triton/x.py")'
    assert (
        text("# /home/ann/k.py and /home/anna/k.py, /data/home/ann") == "# ~/k.py and /home/anna/k.py, /data/home/ann"
    )
    assert text("see file:///home/ann/k.py, /home/ann") == "see file://~/k.py, ~"
    assert text("/var/tmp/x") == "/var/tmp/x"
    assert text("a / b / c") == "a / b / c"
    assert text("# kernel path: /tmp/torchinductor_ann/ab/cab.py") == "# kernel path: torchinductor/ab/cab.py"


def test_what_is_still_absolute_where_a_path_is_stated_has_no_folder() -> None:
    names = FolderNames({"/home/ann": "~"})
    ttir = b'#loc = loc("/srv/secret/k.py":46:0)\n#loc1 = loc("/home/ann/k.py":1:2)\n'
    assert names.applied("ttir", ttir) == b'#loc = loc("elsewhere/k.py":46:0)\n#loc1 = loc("~/k.py":1:2)\n'
    file, info = b'\t.file\t1 "/srv/secret/k.py"\n', b"\t.section\t.debug_info\n\t{\n.b8 47\n.b8 115\n\t}\n"
    strings = b"\t.section\t.debug_str\n\t{\n.b8 95\n\t}\n"
    assert names.applied("ptx", file + info + strings) == b'\t.file\t1 "elsewhere/k.py"\n' + strings


def test_packages_of_another_installation_have_the_same_names() -> None:
    """Kernels may come from a cache that several installations share."""
    names = FolderNames({"/home/ann": "~"})
    assert names.folder(b"/opt/other/site-packages/triton/language") == b"site-packages/triton/language"
    assert names.folder(b"/home/ann/env/site-packages/kernelviz/ops/add") == b"kernelviz/ops/add"
    assert names.folder(b"/work/kernelviz/ops/add") == b"kernelviz/ops/add"
    assert names.folder(b"/srv/secret") == b"elsewhere"


def test_this_process_knows_its_package_others_caches_and_home() -> None:
    own = Path("/data/kernels")
    known = known_folders([own])
    assert known[str(OPS.parent)] == "kernelviz"
    assert {"site-packages", "~", "tmp", "triton-cache", "kernelviz-cache", "python"} <= set(known.values())
    assert known[str(own)] == "plugin"


def moved_cubins(folder: Path, seconds: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, FolderNames]:
    """The cubin of `arithmetic_vec16` whose source lies in this folder with a time of its own, and names for that folder."""
    package = folder / "kernelviz"
    source = package / "ops" / "arithmetic" / "cuda.cu"
    source.parent.mkdir(parents=True)
    shutil.copy(OPS / "arithmetic" / "cuda.cu", source)
    os.utime(source, (seconds, seconds))
    monkeypatch.setenv("KERNELVIZ_CACHE", str(folder / "cache"))
    cubin = nvrtc.compile_cubin(source, "sm_90", DEFINES, "arithmetic_vec16")
    return cubin, FolderNames({**known_folders(), str(package): "kernelviz"})


@pytest.mark.xdist_group("compile-0")
@pytest.mark.skipif(not tool_paths("nvdisasm"), reason="nvdisasm is not installed")
def test_a_cubin_has_the_same_digest_wherever_its_source_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    first, names = moved_cubins(tmp_path / "a", 1_600_000_000, monkeypatch)
    second, other_names = moved_cubins(
        tmp_path / "in" / "a" / "much" / "longer" / "folder" / ("x" * 150), 1_700_000_001, monkeypatch
    )
    assert digest_of(first) != digest_of(second)
    renamed = names.applied("cubin", first)
    assert digest_of(renamed) == digest_of(other_names.applied("cubin", second))
    assert str(tmp_path).encode() not in renamed
    assert names.applied("cubin", renamed) == renamed
    # Whatever reads the file finds the same in it, and the same line numbers.
    assert read_cubin(renamed) == read_cubin(first)
    for options in (("-c", "-gi"), ("-c", "-gp"), ("-json",)):
        expected = disassembled(first, options, tmp_path).replace(f"{tmp_path}/a/kernelviz", "kernelviz")
        expected = expected.replace(str(OPS.parent), "kernelviz")
        assert disassembled(renamed, options, tmp_path) == expected, options
    assert 'File "kernelviz/ops/arithmetic/cuda.cu", line 51' in disassembled(renamed, ("-c", "-gi"), tmp_path)


def disassembled(cubin: bytes, options: tuple[str, ...], folder: Path) -> str:
    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    done = subprocess.run([tool_paths("nvdisasm")[0], *options, file], capture_output=True, text=True, check=True)
    assert "Unable to parse" not in done.stderr
    return re.sub(r"kernel\.cubin", "", done.stdout)


@pytest.mark.xdist_group("compile-0")
def test_a_cubin_of_another_form_has_names_in_as_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core")
    cubin, names = moved_cubins(tmp_path / "a", 1_600_000_000, monkeypatch)
    damaged = bytearray(cubin)
    at = cubin.index(f"{tmp_path}/a/kernelviz/ops/arithmetic".encode())
    version = at - 20
    assert damaged[version : version + 2] == b"\2\0"
    damaged[version] = 77
    with pytest.raises(NotRewritable, match="unknown version 77"):
        with_line_tables(bytes(damaged), names.folder)
    renamed = names.applied("cubin", bytes(damaged))
    assert len(renamed) == len(cubin)
    assert str(tmp_path).encode() not in renamed
    assert read_cubin(renamed) == read_cubin(cubin)
    with pytest.raises(NotRewritable):
        with_line_tables(b"\x7fELF\2\1 no cubin", names.folder)
    assert names.applied("cubin", b"\x7fELF\2\1 no cubin") == b"\x7fELF\2\1 no cubin"
