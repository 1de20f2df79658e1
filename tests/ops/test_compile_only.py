"""Every kernel of our own compiles for every architecture it declares, without a GPU."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import compile_record
import pytest
import turns
from cases import FOLDERS, MAIN_TARGET, OWN, SHARDS, compile_problems, folder_of, ops_of, shard_of

from kernelviz.machine_code.techniques import expected_on
from kernelviz.ops import Op, Variant
from kernelviz.ops.catalog.discovery import FAMILIES

Lines = dict[tuple[str, str], compile_record.Line]


def _variants() -> Iterator[object]:
    for op, v in OWN:
        shard = shard_of(op, v)
        yield pytest.param(shard, op, v, marks=pytest.mark.xdist_group(f"compile-{shard}"), id=f"{op.name}-{v.name}")


pytestmark = pytest.mark.timeout(900)
"""A process compiles a shard for three minutes on an idle machine of two cores, and longer beside other work."""

_compiled: dict[int, Lines] = {}


@pytest.fixture
def compiled(request: pytest.FixtureRequest, compiler_cache: Path) -> Lines:
    """What the process said that compiled a shard, by architecture and case; run once for all its cases."""
    pytest.importorskip("triton")
    pytest.importorskip("cuda.core")
    shard = request.node.callspec.params["shard"]
    if shard not in _compiled:
        lines = compile_record.compiled(ops_of(shard), compiler_cache, seed=turns.commit())
        _compiled[shard] = {(line["arch"], line["case"]): line for line in lines}
    return _compiled[shard]


@pytest.mark.parametrize(("shard", "op", "variant"), list(_variants()))
def test_kernels_compile(shard: int, op: Op, variant: Variant, compiled: Lines) -> None:
    """For each architecture, at every size that it does not refuse, and at one at least."""
    for arch in variant.targets:
        cases = [f"{variant.name} | {problem.key}" for problem in compile_problems(op, variant, arch)]
        assert cases
        found = {case: compiled[arch, case] for case in cases}
        assert {case: line["message"] for case, line in found.items() if not line["ok"]} == {}, arch
        of_variant = (line for (at, of), line in compiled.items() if at == arch and of.split(" | ")[0] == variant.name)
        some = not any(line.get("refused") for line in found.values()) or any(
            line.get("kernels") for line in of_variant
        )
        assert some, f"it refuses every size on {arch}"


SHARD = pytest.mark.parametrize(
    "shard", [pytest.param(n, marks=pytest.mark.xdist_group(f"compile-{n}")) for n in range(SHARDS)]
)


@SHARD
def test_what_is_compiled_again_says_what_is_on_record(shard: int, compiled: Lines) -> None:
    assert compile_record.differences(compiled.values(), compile_record.recorded()) == []


@SHARD
def test_most_kernels_are_on_record(shard: int, compiled: Lines) -> None:
    """Else every run of the tests compiles them again, for up to seven minutes of processor time."""
    again = [line for line in compiled.values() if "on_record" not in line]
    assert len(again) <= len(compiled) / 4, "write the record: python tests/ops/compile_record.py"


def test_an_entry_is_found_only_while_nothing_changed_that_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    op, variant = next((o, v) for o, v in OWN if v.backend == "cuda" and v.techniques)
    keys = [compile_record.key_of(op, variant, "sm_90", "nvrtc"), compile_record.key_of(op, variant, "sm_80", "nvrtc")]
    others = (
        replace(variant, techniques=()),
        replace(variant, targets=("sm_90",)),
        replace(variant, largest={op.axis_names[0]: 7}),
    )
    keys += [compile_record.key_of(op, other, "sm_90", "nvrtc") for other in others]
    monkeypatch.setattr(type(variant), "source_digest", lambda self: "of another source")
    keys.append(compile_record.key_of(op, variant, "sm_90", "nvrtc"))
    monkeypatch.setattr(compile_record, "version", lambda package: "of another release")
    keys.append(compile_record.key_of(op, variant, "sm_90", "nvrtc"))
    assert len(set(keys)) == len(keys)


def test_a_sample_is_compiled_again_and_compared() -> None:
    keys = [f"{n:032x}" for n in range(2000)]
    samples = [{key for key in keys if compile_record.in_sample(key, seed)} for seed in ("a", "b")]
    assert all(10 <= len(sample) <= 45 for sample in samples)
    assert samples[0] != samples[1]
    line = {"arch": "sm_90", "case": "v | p", "ok": True, "kernels": ["k 10 B cubin"], "message": "", "key": "1"}
    refused = {"refused": True, "message": "the size m must be a multiple of 8"}
    for now, differs in (({"kernels": []}, False), ({"ok": False}, True), (refused, True)):
        assert bool(compile_record.differences([line | now], {"1": [line]})) is differs
    assert compile_record.differences([line | {"ok": False}], {}) == []


WITH_TECHNIQUES = [(op, v) for op, v in OWN if v.techniques]


@pytest.mark.parametrize(
    ("shard", "op", "variant"),
    [
        pytest.param(
            shard_of(o, v), o, v, marks=pytest.mark.xdist_group(f"compile-{shard_of(o, v)}"), id=f"{o.name}-{v.name}"
        )
        for o, v in WITH_TECHNIQUES
    ],
)
def test_machine_code_shows_the_declared_techniques(shard: int, op: Op, variant: Variant, compiled: Lines) -> None:
    """On each architecture that was compiled for here; tests/machine_code/check_catalogue.py compiles for every one."""
    shown = {arch: compiled[arch, f"techniques of {op.name} {variant.name}"]["techniques"] for arch in variant.targets}
    checked = {arch: set(seen) for arch, seen in shown.items() if isinstance(seen, list)}
    assert checked, "compiled for no architecture"
    missing = {arch: expected_on(variant.techniques, arch) - seen for arch, seen in checked.items()}
    assert not any(missing.values()), missing


WRITTEN = re.compile(
    r"^@(?:triton|gluon)\.jit(?:\([^)]*\))?\ndef ([a-z]\w*)|"
    r'^extern "C" __global__ void(?:\s+__launch_bounds__\([^)]*\)|\s+__cluster_dims__\([^)]*\))*\s+(\w+)',
    re.MULTILINE,
)


ONLY_FOR_VIEWS = {"chain_single"}


@pytest.mark.parametrize(
    ("shard", "folder"),
    [
        pytest.param(shard, folder, marks=pytest.mark.xdist_group(f"compile-{shard}"))
        for folder in FOLDERS
        for shard in {shard_of(o, v) for o, v in OWN if folder_of(o, v) == folder}
    ],
)
def test_every_kernel_was_among_them(shard: int, folder: str, compiled: Lines) -> None:
    """The problems of `sizes.COMPILED` reach every kernel of every kernel file."""
    main = [line for (arch, _), line in compiled.items() if arch == MAIN_TARGET]
    reached = {name.split()[0] for line in main for name in line.get("kernels", [])}
    files = [file for file in (FAMILIES / folder).iterdir() if file.suffix in (".py", ".cu")]
    texts = {file.suffix: "" for file in files}
    for file in files:
        texts[file.suffix] += file.read_text()
    written = {name for text in texts.values() for pair in WRITTEN.findall(text) for name in pair if name}
    # Views that do not start on 16 bytes have kernels of their own, which no problem needs.
    written -= ONLY_FOR_VIEWS
    # Not what kernels call: a kernel is launched by another module or through an index.
    written -= {name for name in written if re.search(rf"(?<!def ){name}\(", texts.get(".py", ""))}
    assert written
    assert written == reached & written
