"""Which tests of the parts `kernels` and `one_click` passed on this card with the code and the software as they are now, by the
committed report of the card. A part does not run them again.

    python -m pytest tests/gpu --part kernels          what is not on record, and a sample of the rest: others at each commit
    python -m pytest tests/gpu --part kernels --all    everything

A test that ran is kept with a digest of all that decides whether it passes (its key):

- the card, its compute capability, the major version of the driver, the versions of the compilers and libraries;
- of the op: the functions that say what is right and what it costs, and its declaration; of its variants: the digest of their
  sources and their declaration; and the problems that the test asks;
- the code that binds, calls, judges and, in one_click, measures them: all that the test, and for one_click the worker, import,
  but for `NOT_DECIDING`, and for the ops themselves, of which each test has its own.

So an entry is never out of date; it is only not found any more. A test without a key is always run. Imports no torch at its top.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent), str(HERE.parent / "ops")]

import gpu_report  # noqa: E402
from cases import Way, large_sizes, odd_sizes  # noqa: E402
from compile_record import in_sample  # noqa: E402
from judged import problem_for_ncu  # noqa: E402
from part_report import environment, report_file  # noqa: E402
from passed_record import code_hash, imported_modules, reached, read_text  # noqa: E402

from kernelviz.ops import Op, Variant, catalogue  # noqa: E402
from kernelviz.ops.catalog.digest import Closure  # noqa: E402

ROOTS: Mapping[str, tuple[str, ...]] = {
    "kernels": ("tests/gpu/test_kernels.py",),
    "one_click": (
        "tests/gpu/test_one_click.py",
        "kernelviz/measure/session/device_session.py",
        "kernelviz/worker/__main__.py",
        "kernelviz/worker/supervisor.py",
    ),
}
"""The files from which the code of a part's tests is found by its imports."""
LAUNCHING = ("kernelviz/ops/kernels/nvcc.py", "kernelviz/ops/kernels/nvrtc.py")
"""Of these, the digest of a variant holds only what decides the machine code."""
NOT_DECIDING = (
    *("kernelviz/api/", "kernelviz/bench/", "kernelviz/cli/", "kernelviz/formats/", "kernelviz/models/"),
    *("kernelviz/plots/", "kernelviz/published_claims/", "kernelviz/shipped/", "kernelviz/store/", "kernelviz/tables/"),
    *("kernelviz/text/", "kernelviz/ui/", "kernelviz/workloads/", "kernelviz/measure/workloads/"),
    *("kernelviz/measure/selftest/", "kernelviz/measure/roofs/", "kernelviz/__init__.py", "kernelviz/core/units.py"),
    *("kernelviz/ops/catalog/best.py", "kernelviz/ops/catalog/called.py", "kernelviz/ops/catalog/choice.py"),
    *("tests/gpu/on_record.py", "tests/gpu/part_report.py", "tests/gpu/parts.py", "tests/ops/gpu_report.py"),
    *("tests/ops/compile_record.py", "tests/ops/passed_record.py", "tests/turns.py", "tests/ops/sizes/"),
)
"""Code that words, keeps, shows or queues a result, or chooses tests or variants: it makes no kernel wrong and moves no time, and
the parts smoke and product, which always run, ask all of the product. The sizes are in the key of each test."""
OF_THE_OPS = "kernelviz/ops/"
OTHER_PACKAGES = ("torch", "triton", "cuda-core", "cuda-bindings", "cupti-python", "liger-kernel", "numpy")
"""Packages that decide, beside all whose names begin with nvidia-."""
LEFT_OUT = pytest.StashKey[frozenset[str]]()
"""In a process's configuration: the names of the tests that it leaves out."""
PROPERTY = "key"
"""The property of a test by which the report gets its key."""


def digest(parts: object) -> str:
    """32 hex digits."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()[:32]


def card_of(facts: Mapping[str, Any], packages: Mapping[str, str]) -> list[object] | None:
    """What of `environment` and of the installed packages decides; None without a GPU."""
    if facts.get("device") is None:
        return None
    python = ".".join(platform.python_version_tuple()[:2])
    driver = str(facts.get("driver")).partition(".")[0]
    return [
        *(facts["device"], facts["compute_capability"], driver, facts["cuda"], python),
        sorted(
            f"{name} {version}"
            for name, version in packages.items()
            if name in OTHER_PACKAGES or name.startswith("nvidia-")
        ),
    ]


@functools.cache
def _card() -> list[object] | None:
    named = {one.metadata["Name"].lower().replace("_", "-"): one.version for one in metadata.distributions()}
    return card_of(environment(), named)


def deciding(part: str) -> list[Path]:
    """The files that decide for every test of a part: what its roots import, directly or not."""
    roots = (ROOT / name for name in (*ROOTS[part], *LAUNCHING))
    return reached(roots, lambda path: (one for one in imported(path) if _decides(str(one.relative_to(ROOT)))))


def _decides(name: str) -> bool:
    if name.startswith(NOT_DECIDING):
        return False
    return not name.startswith(OF_THE_OPS) or name.startswith((f"{OF_THE_OPS}catalog/", f"{OF_THE_OPS}__init__.py"))


@functools.cache
def imported(path: Path) -> tuple[Path, ...]:
    """The files of this repository that a file imports anywhere in it, with the packages around them."""
    parts = [name.split(".") for name in imported_modules(read_text(path))]
    stems = {"/".join(one[:length]) for one in parts for length in range(1, len(one) + 1)}
    folders = [ROOT, HERE, HERE.parent / "ops", HERE.parent]
    places = [folder / end for stem in stems for folder in folders for end in (f"{stem}.py", f"{stem}/__init__.py")]
    return tuple(sorted({place for place in places if place.is_file()}))


@functools.cache
def code_of(part: str) -> str:
    """A digest of the code that decides for every test of a part."""
    return digest([(str(path.relative_to(ROOT)), code_hash(path.suffix, read_text(path))) for path in deciding(part)])


def declared(value: object, but: Sequence[str] = ()) -> object:
    """A declaration as plain values: of a function the digest of its code, of a record its fields, except those named."""
    if isinstance(value, FunctionType):
        return Closure().digest(value)
    if is_dataclass(value):
        return [(one.name, declared(getattr(value, one.name))) for one in fields(value) if one.name not in but]
    if isinstance(value, Mapping):
        return sorted((repr(key), declared(one)) for key, one in value.items())
    if isinstance(value, tuple | list):
        return [declared(one) for one in value]
    return repr(value)


TOLD = (
    "summary",
    "formula",
    "rule",
    "family",
    "axes",
    "presets",
    "fusion",
    "first",
    "best",
    "variants",
    "backward",
    "published",
)
"""Fields of an op or a variant that are words, or choose what is offered."""


@functools.cache
def _of_op(name: str) -> str:
    op = catalogue()[name]
    return digest([declared(op, TOLD), declared(op.backward, TOLD), op.axis_names])


@functools.cache
def _of_variant(op: str, name: str, direction: str) -> str:
    variant = catalogue()[op].variant_named(name)
    variant = variant.of_backward() if direction == "backward" else variant
    return digest(declared(variant, TOLD))


def key_of(part: str, parameters: Mapping[str, Any], card: object) -> str | None:
    """The key of a test, by its parameters; None where it has none, as without a GPU, or where a source cannot be read."""
    if card is None or part not in ROOTS:
        return None
    try:
        asked = _of_kernels(parameters) if part == "kernels" else _of_click(parameters)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    return None if asked is None else digest([card, code_of(part), asked])


def _of_kernels(parameters: Mapping[str, Any]) -> list[object] | None:
    variant, way = parameters.get("variant"), parameters.get("way")
    op = parameters.get("op") or catalogue()["softmax"]  # the one op with tests of its own
    if not isinstance(op, Op) or not isinstance(variant, Variant):
        return None
    sizes = (*odd_sizes(op), *large_sizes(op))
    facts: list[object] = [op.name, _of_op(op.name), sizes]
    if isinstance(way, Way):
        return [*facts, way.problem(op, sizes[0]).key, _of_variant(op.name, variant.name, way.direction)]
    return [*facts, parameters.get("dtype"), [_of_variant(op.name, variant.name, one) for one in variant.directions]]


def _of_click(parameters: Mapping[str, Any]) -> list[object] | None:
    name = parameters.get("name")
    if not isinstance(name, str) or name not in catalogue():
        return None
    op = catalogue()[name]
    variants = [(v.name, _of_variant(op.name, v.name, "forward")) for v in op.variants if "forward" in v.directions]
    return [name, _of_op(name), problem_for_ncu(op).key, variants]


def on_record(part: str, keys: Mapping[str, str], report: Path) -> dict[str, str]:
    """Of tests and their keys, those that passed with this key according to a card's report."""
    parts = json.loads(report.read_text()).get("parts", {}) if report.is_file() else {}
    told = parts.get(part, {}).get("tests", {})
    return {
        test: key
        for test, key in keys.items()
        if told.get(test, {}).get("outcome") == "passed" and told[test].get(PROPERTY) == key
    }


def without_entry(items: Iterable[pytest.Item], report: Path) -> set[str]:
    """The tests of a variant whose source has no entry in the report that says it passed."""
    entries = gpu_report.read(report)
    missing = set()
    for item in items:
        given = _parameters(item)
        op, variant, way = given.get("op"), given.get("variant"), given.get("way")
        if isinstance(op, Op) and isinstance(variant, Variant) and isinstance(way, Way):
            entry = entries.get((op.name, variant.name, way.dtype, way.compute or "", way.direction))
            now = way.variant(op, variant).source_digest()
            if entry is None or not entry.passed or entry.source_digest != now:
                missing.add(item.nodeid)
    return missing


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}


def left_out(passed: Mapping[str, str], seed: str) -> set[str]:
    """Of the tests on record, those that are not run again at the commit `seed`."""
    return {test for test, key in passed.items() if not in_sample(f"{test} {key}", seed)}


def asks_all(config: pytest.Config) -> bool:
    """Whether the caller asked for every test, or said which."""
    asked = [config.option.keyword, *(config.getoption(name, default=False) for name in ("--all", "--whole-sweep"))]
    return any(asked) or any("::" in argument for argument in config.args)


def chosen(part: str, items: Sequence[pytest.Item], config: pytest.Config) -> list[pytest.Item]:
    """The tests of a part that are run now. Each is given its key, for the report."""
    facts = environment() if part in ROOTS else {}
    keys: dict[str, str] = {}
    for item in items if facts.get("device") is not None else ():
        key = key_of(part, _parameters(item), _card())
        if key is not None:
            keys[item.nodeid] = key
            item.user_properties.append((PROPERTY, key))
    gone: set[str] = set()
    if keys and not asks_all(config):
        report = report_file(facts["device"])
        passed = on_record(part, keys, report)
        for test in without_entry((i for i in items if i.nodeid in passed), report):
            del passed[test]
        gone = left_out(passed, facts.get("commit") or "")
        if gone >= keys.keys():
            gone |= {item.nodeid for item in items}  # what is asked about the others has nothing to ask
    config.stash[LEFT_OUT] = frozenset(gone)
    return [item for item in items if item.nodeid not in gone]
