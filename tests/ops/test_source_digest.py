"""The source digest of every variant: it changes with each token of what the variant runs, and with nothing else."""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cases import variants
from changed_sources import changed, rewritten, tokens

from kernelviz.ops import Variant, op_named
from kernelviz.ops.catalog.digest import ROOT, Closure, read_source, source_digest

REPOSITORY = ROOT.parents[1]
LAUNCHER = ROOT / "kernels" / "nvrtc.py"
LAUNCHERS = {LAUNCHER: "code_and_options", ROOT / "kernels" / "nvcc.py": "flags"}
TEXTS = {path: path.read_text() for path in ROOT.rglob("*") if path.suffix in (".py", ".cu", ".cuh", ".cpp")}


def _directions() -> dict[str, Variant]:
    found: dict[str, Variant] = {}
    for op, v in variants():
        found[f"{op.name} {v.name}"] = v
        if v.backward is not None:
            found[f"{op.name} {v.name} backward"] = v.of_backward()
    return found


VARIANTS = _directions()
"""Every variant, and its backward pass where that is another function."""


def overlay(others: Mapping[Path, str]) -> Callable[[Path], str]:
    """Reads these texts in place of those of the files."""

    def read(path: Path) -> str:
        if path in others:
            return others[path]
        if path not in TEXTS:
            raise FileNotFoundError(path)
        return TEXTS[path]

    return read


def digest(chosen: Variant, others: Mapping[Path, str] | None = None) -> str:
    return source_digest(chosen.bind, "no source", overlay(others or {}))


def files(chosen: Variant) -> tuple[Path, ...]:
    """The files that its digest is taken of."""
    closure = Closure(overlay({}))
    closure.digest(chosen.bind)
    return tuple(closure.files)


@functools.cache
def as_it_is(name: str) -> str:
    """The digest of a variant of the files as they are."""
    return digest(VARIANTS[name])


def all_as_they_are() -> dict[str, str]:
    return {name: as_it_is(name) for name in VARIANTS}


def mutated(chosen: Variant, path: Path, seed: int) -> str:
    """The file with one token changed; of the file that defines the variant, one of the function itself, and of the one that
    launches CUDA C++, one of the function that decides what is compiled."""
    own = path == Path(inspect.getfile(chosen.bind))
    within = chosen.bind.__qualname__ if own else LAUNCHERS.get(path)
    places = tokens(TEXTS[path], path.suffix, within)
    return changed(TEXTS[path], places[seed % len(places)])


def test_the_digest_of_a_variant_is_read_from_the_files() -> None:
    assert {name: chosen.source_digest() for name, chosen in VARIANTS.items()} == all_as_they_are()
    assert source_digest(len, "no source") not in all_as_they_are().values()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_token_of_any_file_that_it_runs_changes_it(name: str) -> None:
    chosen = VARIANTS[name]
    for path in files(chosen):
        text = mutated(chosen, path, 17 * (zlib.crc32(name.encode()) % 3))
        assert digest(chosen, {path: text}) != as_it_is(name), path


def test_comments_docstrings_and_formatting_change_none() -> None:
    others = {path: rewritten(text, path.suffix) for path, text in TEXTS.items()}
    assert all(others[path] != text for path, text in TEXTS.items())
    assert {name: digest(chosen, others) for name, chosen in VARIANTS.items()} == all_as_they_are()


def test_files_that_it_does_not_run_change_none() -> None:
    for name, chosen in VARIANTS.items():
        own = set(files(chosen))
        assert digest(chosen, dict.fromkeys(TEXTS.keys() - own, "other = 1")) == as_it_is(name), name


@pytest.mark.parametrize("function", ["launch", "resident", "architecture", "cached_code", "_kernel"])
def test_how_a_kernel_is_loaded_and_launched_changes_none(function: str) -> None:
    places = tokens(TEXTS[LAUNCHER], LAUNCHER.suffix, function)
    others = {LAUNCHER: changed(TEXTS[LAUNCHER], places[-1])}
    assert {name: digest(chosen, others) for name, chosen in VARIANTS.items()} == all_as_they_are()


def test_another_variant_of_the_same_file_changes_none() -> None:
    """But those that call it."""
    neighbours = dict(zip(VARIANTS, list(VARIANTS)[1:], strict=False))
    compared = 0
    for name, after in neighbours.items():
        chosen, other = VARIANTS[name], VARIANTS[after]
        path = Path(inspect.getfile(chosen.bind))
        calls = re.search(rf"\b{other.bind.__name__}\b", inspect.getsource(chosen.bind))
        if (
            path == Path(inspect.getfile(other.bind))
            and other.bind.__qualname__ != chosen.bind.__qualname__
            and not calls
        ):
            compared += 1
            assert digest(chosen, {path: mutated(other, path, compared)}) == as_it_is(name), (name, after)
    assert compared > 150


@pytest.mark.parametrize(
    ("op", "variant", "file", "before", "after"),
    [
        ("add", "cuda_adaptive", "vec16.py", "UNROLLED = Layout(vectors=4", "UNROLLED = Layout(vectors=2"),
        ("softmax", "cuda_row", "row_tiles.py", r"THREADS_PER_MULTIPROCESSOR = \d+", "THREADS_PER_MULTIPROCESSOR = 1"),
    ],
)
def test_a_constant_that_several_families_share_changes_it(
    op: str, variant: str, file: str, before: str, after: str
) -> None:
    path = ROOT / "kernels" / file
    text, count = re.subn(re.escape(before) if "(" in before else before, after, TEXTS[path])
    assert count == 1
    assert digest(op_named(op).variant_named(variant), {path: text}) != as_it_is(f"{op} {variant}")


def test_variants_of_one_factory_differ_by_what_they_were_made_with() -> None:
    """Those that share a digest are one and the same function, offered by several ops."""
    by_digest: dict[str, set[int]] = {}
    for name, chosen in VARIANTS.items():
        by_digest.setdefault(as_it_is(name), set()).add(id(chosen.bind))
    assert [functions for functions in by_digest.values() if len(functions) > 1] == []


def test_a_configuration_has_the_digest_of_its_variant() -> None:
    tuned = op_named("add").variant_named("triton_tuned[block=256]")
    assert tuned.source_digest() == as_it_is("add triton_tuned")


MOVED = re.compile(r"kernelviz\.ops\.(?!catalog\b)(\w+)")
DIGESTS = """
import json
from kernelviz.ops import catalogue
print(json.dumps({f"{o.name} {v.name}": v.source_digest() for o in catalogue().values() for v in o.variants}))
"""


def _renamed(text: str) -> str:
    """Every folder of ops and every module in it is called otherwise."""
    text = re.sub(
        r"^(\s*from kernelviz\.ops\.(?!catalog\b)\w+ import )(\w+(?:, \w+)*)(?: as (\w+))?$",
        lambda found: found[1] + ", ".join(f"{name}_moved as {found[3] or name}" for name in found[2].split(", ")),
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"kernelviz\.ops\.(?!catalog\b)(\w+)\.(\w+)", r"kernelviz.ops.\1_moved.\2_moved", text)
    text = re.sub(r"kernelviz\.ops\.(?!catalog\b)(\w+) import", r"kernelviz.ops.\1_moved import", text)
    text = text.replace('SHARED = ("catalog", "kernels")', 'SHARED = ("catalog", "kernels_moved")')
    text = text.replace('Path("kernels", "headers")', 'Path("kernels_moved", "headers")')
    text = re.sub(r'"(\w+)\.(cu|cpp)"', r'"\1_moved.\2"', text)
    return re.sub(r'#include "(\w+)\.cuh"', r'#include "\1_moved.cuh"', text)


def test_a_path_changes_none(tmp_path: Path) -> None:
    """A copy in which every folder, module, kernel file and header of ops has another name, and what imports it follows."""
    for path in (ROOT.parent / "core").rglob("*.py"):
        _write(tmp_path / path.relative_to(REPOSITORY), path.read_text())
    shutil.copy(ROOT.parent / "__init__.py", tmp_path / "kernelviz")
    for path, text in TEXTS.items():
        folders, kept = list(path.relative_to(ROOT).parts[:-1]), path.name == "__init__.py" or "catalog" in path.parts
        if folders and folders[0] != "catalog":
            folders[0] += "_moved"
        name = path.name if kept else f"{path.stem}_moved{path.suffix}"
        _write(tmp_path / "kernelviz" / "ops" / Path(*folders, name), _renamed(text))
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found == {name: as_it_is(name) for name in found}
    assert len(found) == len(variants())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


IMPORTED = """
import importlib, json, sys
from kernelviz.ops import catalogue
catalogue()
before = dict(sys.modules)
found = {}
for case, modules in json.load(sys.stdin).items():
    for name in [n for n in sys.modules if n.startswith("kernelviz.ops.") and n not in before]:
        del sys.modules[name]
    for name in modules:
        importlib.import_module(name)
    # Rules of the catalogue load some modules of kernels before: these count if the case names them.
    new = [n for n in sys.modules if n.startswith("kernelviz.ops.") and (n not in before or n in modules)]
    found[case] = [sys.modules[n].__file__ for n in new]
print(json.dumps(found))
"""


def test_what_a_launch_imports_is_among_its_files() -> None:
    """The modules that binding a CUDA kernel loads, in a process of its own, against those that reading finds."""
    asked = {}
    for name, chosen in VARIANTS.items():
        lines = re.findall(r"from (kernelviz\.ops\.\w+) import (cuda\w*)", inspect.getsource(chosen.bind))
        if chosen.backend == "cuda" and lines:
            asked[name] = [f"{package}.{module}" for package, module in lines]
    assert len(asked) > 50
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name, loaded in json.loads(done.stdout).items():
        assert loaded, name
        # Importing a module runs the file of its package too, of which nothing is used unless it is imported by name.
        modules = {Path(file) for file in loaded if not file.endswith("__init__.py")}
        assert modules
        assert modules <= set(files(VARIANTS[name])), name


PLUGIN = '''
from kernelviz.ops import Launch, variant
from beside import block

@variant(op="add", backend="torch")
def mine(x_N, y_N) -> Launch:
    """Mine."""
    from kernelviz.ops.arithmetic import triton as kernels
    return lambda: (x_N + y_N, block, "mine.cu")
'''


def test_of_a_plugin_all_counts_that_it_has_and_imports(tmp_path: Path) -> None:
    from kernelviz.ops import with_plugins

    texts = {"mine.py": PLUGIN, "beside.py": "block = 1  # elements\n", "mine.cu": "int a; // b\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "unrelated.py").write_text("block = 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        mine = with_plugins([str(tmp_path / "mine.py")])["add"].variant_named("mine")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("beside", None)
    before = mine.source_digest()

    def now(file: Path, old: str, new: str) -> str:
        def read(path: Path) -> str:
            text = read_source(path)
            return text.replace(old, new) if path == file else text

        return source_digest(mine.bind, "mine", read)

    assert now(tmp_path / "mine.py", '"""Mine."""', '"""My own."""') == before
    assert now(tmp_path / "beside.py", "elements", "of them") == before
    assert now(tmp_path / "mine.py", "x_N + y_N", "y_N + x_N") != before
    assert now(tmp_path / "beside.py", "block = 1", "block = 2") != before
    assert now(tmp_path / "mine.cu", "int a", "long a") != before
    assert now(ROOT / "arithmetic" / "triton.py", "num_warps", "num_stages") != before
