"""Every kernel of our own compiles for every architecture it declares, without a GPU."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import FOLDERS, MAIN_TARGET, OWN, compile_problems, folder_of, ops_of, shard_of

from kernelviz.machine_code.techniques import expected_on
from kernelviz.ops import Op, Variant
from kernelviz.ops.catalog.discovery import FAMILIES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Lines = dict[tuple[str, str], dict[str, object]]


def _cases() -> Iterator[object]:
    for op, v in OWN:
        for arch in v.targets:
            group = pytest.mark.xdist_group(f"compile-{shard_of(op, v)}")
            for p in compile_problems(op, v, arch):
                yield pytest.param(arch, shard_of(op, v), f"{v.name} | {p.key}", marks=group)


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
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment |= {"TRITON_CACHE_DIR": str(compiler_cache), "KERNELVIZ_CACHE": str(compiler_cache)}
        environment.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            [sys.executable, HERE / "compiled_only.py", *ops_of(shard)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        lines = map(json.loads, done.stdout.splitlines())
        _compiled[shard] = {(line["arch"], line["case"]): line for line in lines}
    return _compiled[shard]


@pytest.mark.parametrize(("arch", "shard", "case"), list(_cases()))
def test_kernel_compiles(arch: str, shard: int, case: str, compiled: Lines) -> None:
    found = compiled[arch, case]
    assert found["ok"], found["message"]
    if found.get("refused"):
        name = case.split(" | ")[0]
        others = [line for (at, of), line in compiled.items() if at == arch and of.split(" | ")[0] == name]
        assert any(line.get("kernels") for line in others), "it refuses every size"
        pytest.skip(str(found["message"]))


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


@pytest.mark.parametrize(
    ("shard", "folder"),
    [
        pytest.param(shard, folder, marks=pytest.mark.xdist_group(f"compile-{shard}"))
        for folder in FOLDERS
        for shard in {shard_of(o, v) for o, v in OWN if folder_of(o, v) == folder}
    ],
)
def test_every_kernel_was_among_them(
    shard: int, folder: str, compiled: dict[tuple[str, str], dict[str, list[str]]]
) -> None:
    """The problems of `sizes.COMPILED` reach every kernel of every kernel file."""
    main = [line for (arch, _), line in compiled.items() if arch == MAIN_TARGET]
    reached = {name.split()[0] for line in main for name in line.get("kernels", [])}
    files = [file for file in (FAMILIES / folder).iterdir() if file.suffix in (".py", ".cu")]
    written = {name for file in files for pair in WRITTEN.findall(file.read_text()) for name in pair if name}
    assert written
    assert written == reached & written
