"""Which files of tests of kernels passed with the code as it is now, as committed (`passed.json`). They are not run again.

    python tests/ops/passed_record.py          run the files that are not on record, and write the record
    python tests/ops/passed_record.py --all    run all of them

A file is on record under a digest of all that decides whether its tests pass: the file itself, the files of tests from which it
imports, the code in `DECIDING` with the modules of `CORE` that it imports, and the versions of the packages in `PACKAGES`. So an
entry is never out of date; it is only not found any more. Whoever calls pytest without a path gets the tests of files that are
not on record, and all tests of one file in eighty, others at each commit. Whoever names a path gets every test there. Imports no
torch.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent), str(HERE)]

from compile_record import in_sample, version  # noqa: E402
from turns import commit  # noqa: E402

from kernelviz.ops.catalog.source_code import c_lines  # noqa: E402

RECORD = HERE / "passed.json"
FILES = (
    *("test_attention*.py", "test_bounds*.py", "test_convolution*.py", "test_grouped_*.py", "test_interpreter.py"),
    *("test_argmax_known_length.py", "test_chain_at_once.py", "test_column_sum.py", "test_column_vectors.py"),
    *("test_cross_entropy_kernels.py", "test_known_rows.py", "test_linear_*.py", "test_matmul_*.py"),
    *("test_one_block.py", "test_rope_kernels.py", "test_row_lanes.py", "test_row_padding.py", "test_row_starts.py"),
    *("test_short_rows.py", "test_slab_ring_*.py", "test_slab_rows*.py", "test_slices.py"),
    *("test_softmax_short_rows.py", "test_source_digest.py", "test_special_values.py"),
    *("test_split_rows*.py", "test_uniform_fill.py", "test_variants.py", "test_varlen_*.py", "test_w4a16_matmul.py"),
)
"""The files whose tests depend on nothing but kernels and the code that judges them, by the pattern of their names. New files of
tests that call kernels on the processor are among them by themselves."""
CORE = "kernelviz/core"
"""The package of types, of which only what is imported decides: a new type of a page or a document does not."""
DECIDING = (
    *("kernelviz/core/backends", "kernelviz/machine_code", "kernelviz/ops"),
    *("kernelviz/measure/__init__.py", "kernelviz/measure/gate", "kernelviz/measure/inspection"),
    "kernelviz/measure/session",
    *("tests/ops/barriers_of_ttgir.py", "tests/ops/cases.py", "tests/ops/changed_sources.py", "tests/ops/checking.py"),
    *("tests/ops/conftest.py", "tests/ops/cuda", "tests/ops/emulator.py", "tests/ops/grouped_configurations.py"),
    *("tests/ops/interpreted.py", "tests/ops/interpreted_fp8.py", "tests/ops/interpreted_parts.py"),
    "tests/ops/interpreter_process.py",
    *(
        "tests/ops/matmul_configurations.py",
        "tests/ops/rows_on_processor.py",
        "tests/ops/sizes",
        "tests/ops/special_values.py",
        "tests/ops/varlen_lengths.py",
    ),
)
"""The code that these tests use: whoever writes the record is told what else they load."""
NOT_DECIDING = (
    *("kernelviz/__init__.py", "kernelviz/core/units.py", "tests/conftest.py", "tests/turns.py"),
    *("tests/ops/passed_record.py", "tests/ops/compile_record.py"),
    *("kernelviz/ops/catalog/called.py", "kernelviz/ops/catalog/choice.py"),
)
"""Code that test processes load and that decides nothing: it names the Python API, writes numbers as text, only chooses tests,
or chooses the variant that a user gets."""
RULE = "best"
"""The module of each family that chooses that variant, the argument of an op that names the rule, and its field."""
PACKAGES = ("torch", "triton", "numpy", "hypothesis", "cuda-core", "nvidia-cuda-nvrtc", "pytest")
SUFFIXES = (".py", ".cu", ".cuh", ".h", ".cpp")
MOST_MISSING = 0.25
"""Of the files, so many may be absent from the record."""
Record = Mapping[str, str]
"""The digest under which each file passed, by its name."""


def files() -> list[Path]:
    """The files whose tests are on record once they have passed."""
    return sorted(file for file in HERE.glob("test_*.py") if any(fnmatch(file.name, pattern) for pattern in FILES))


def digest_of(file: Path) -> str:
    """The digest of all that decides whether the tests of a file pass (32 hex digits)."""
    return _hash([_shared(), *(_code(one) for one in reached([file], _imported_tests))])


def _imported_tests(file: Path) -> list[Path]:
    """The files of tests in this folder from which a file of tests imports."""
    names = {name.partition(".")[0] for name in imported_modules(read_text(file)) if name.startswith("test_")}
    return [place for place in (HERE / f"{name}.py" for name in names) if place.is_file()]


@functools.cache
def _shared() -> str:
    """What decides it for every file."""
    versions = [*(f"{name} {version(name)}" for name in PACKAGES), f"python {'.'.join(map(str, sys.version_info[:2]))}"]
    return _hash([*versions, *(f"{path.relative_to(ROOT)} {_code(path)}" for path in deciding())])


def deciding() -> list[Path]:
    """The files that decide for every file of tests: those of `DECIDING`, and of `CORE` what they import, directly or not."""
    return reached(_sources(DECIDING), _imported_core)


def reached(start: Iterable[Path], imported: Callable[[Path], Iterable[Path]]) -> list[Path]:
    """These files and those that they import, directly or not. `imported`: the files that one imports itself."""
    found = set(start)
    unread = list(found)
    while unread:
        new = set(imported(unread.pop())) - found
        found |= new
        unread += new
    return sorted(found)


def _imported_core(path: Path) -> list[Path]:
    """The modules of `CORE` that a file imports anywhere in it, and the packages around them."""
    modules = _imported_names(read_text(path)) if path.suffix == ".py" else ()
    stems = [ROOT.joinpath(*module.split(".")) for module in modules]
    places = [place for stem in stems for place in (stem / "__init__.py", stem.with_suffix(".py"))]
    return [place for place in places if place.is_file() and str(place.relative_to(ROOT)) not in NOT_DECIDING]


@functools.lru_cache(maxsize=1024)
def imported_modules(text: str) -> frozenset[str]:
    """What a module imports anywhere in it, by its dotted name. Of ``from a import b`` these are a and a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


@functools.lru_cache(maxsize=1024)
def _imported_names(text: str) -> tuple[str, ...]:
    """What a module imports of `CORE`, by its dotted name, with the packages around it."""
    package = tuple(CORE.split("/"))
    parts = [tuple(name.split(".")) for name in imported_modules(text)]
    inside = [part for part in parts if part[: len(package)] == package]
    return tuple(sorted({".".join(part[:length]) for part in inside for length in range(len(package), len(part) + 1)}))


def _sources(places: Iterable[str]) -> Iterator[Path]:
    for place in (ROOT / name for name in places):
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        named = {path: str(path.relative_to(ROOT)) for path in found if path.suffix in SUFFIXES}
        yield from (path for path, name in named.items() if name not in NOT_DECIDING and path.stem != RULE)


def _code(path: Path) -> str:
    """The code of a file without comments and docstrings, as a hash."""
    return code_hash(path.suffix, read_text(path))


def read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.lru_cache(maxsize=1024)
def code_hash(suffix: str, text: str) -> str:
    """A hash of code, the same for other comments and docstrings."""
    return _hash([_code_of(suffix, text)])


def _code_of(suffix: str, text: str) -> str:
    if suffix != ".py":
        return "\n".join(c_lines(text))
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_docstring(one) and not _is_of_rule(one)]
        elif isinstance(node, ast.ImportFrom):
            node.names = [alias for alias in node.names if alias.name != RULE]
        elif isinstance(node, ast.Call):
            node.keywords = [one for one in node.keywords if one.arg != RULE]
    return ast.dump(tree)


def _is_of_rule(node: ast.stmt) -> bool:
    """Whether it only imports rules, or is the field of an op for its rule."""
    if isinstance(node, ast.ImportFrom):
        rules = (node.module or "").endswith(f".{RULE}")
        return rules or all(alias.name == RULE for alias in node.names)
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == RULE


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def recorded() -> Record:
    return dict(json.loads(RECORD.read_text())) if RECORD.is_file() else {}


def on_record(record: Record | None = None) -> dict[Path, str]:
    """The files that passed with this very code, and their digests."""
    known = recorded() if record is None else record
    digests = {file: digest_of(file) for file in files()}
    return {file: digest for file, digest in digests.items() if known.get(file.name) == digest}


def left_out(passed: Mapping[Path, str], seed: str) -> set[Path]:
    """Of the files on record, those that are not run again at the commit `seed`."""
    return {file for file, digest in passed.items() if not in_sample(f"{file.name} {digest}", seed)}


def names_of_left_out(config: pytest.Config) -> list[str]:
    """The names of the files that this call of pytest leaves out: none if the caller said which tests to run."""
    if config.args != config.getini("testpaths") or config.option.keyword:
        return []
    return sorted(file.name for file in left_out(on_record(), commit()))


class Watched:
    """A plug-in that notes the files with a test that did not pass, and what the tests loaded."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.passed: set[str] = set()
        self.loaded: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = Path(report.nodeid.partition("::")[0]).name
        (self.failed if report.failed else self.passed).add(name)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.loaded |= set(getattr(node, "workeroutput", {}).get("loaded", ()))


def not_deciding(loaded: Iterable[str]) -> list[str]:
    """Of loaded files, those that no digest covers."""
    own = {f"tests/ops/{file.name}" for file in files()}
    covered = {str(path.relative_to(ROOT)) for path in deciding()}
    rules = {name for name in loaded if name.startswith("kernelviz/ops/") and Path(name).stem == RULE}
    return sorted({*loaded} - {*NOT_DECIDING} - own - covered - rules)


def main(arguments: Sequence[str]) -> int:
    if arguments and list(arguments) != ["--all"]:
        sys.stderr.write(f"unknown arguments {' '.join(arguments)}; give --all or nothing\n")
        return 2
    known = {} if arguments else on_record()
    wanted = [file for file in files() if file not in known]
    watched = Watched()
    if wanted:
        pytest.main(["-q", "--tb=short", *map(str, wanted)], plugins=[watched])
    more = not_deciding(watched.loaded)
    if more:
        sys.stderr.write(f"nothing is written: tests load {', '.join(more)}, which DECIDING does not name\n")
        return 1
    passed = {file.name for file in known} | (watched.passed - watched.failed)
    record = {file.name: digest_of(file) for file in files() if file.name in passed}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    sys.stdout.write(f"{RECORD.name}: {len(record)} of {len(files())} files\n")
    return 1 if watched.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
