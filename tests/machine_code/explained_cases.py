"""Pairs of variants whose difference the product has to explain: times of recorded H200 runs, with code that was compiled here.

``python tests/machine_code/explained_cases.py`` compiles all cases and writes them into explained_cases.msgpack.xz. It is a
process of its own that has no GPU: the product's bind functions are called on stand-ins of tensors, and the drivers of Triton and
NVRTC are replaced by ones that compile and note what would be launched. Tests read the file, and compile again only the cases
whose variants have changed since.
"""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from kernelviz.bench import run_files  # noqa: E402
from kernelviz.core import Artifact, CodeContent, CompiledCode, Kernel, Problem, Result, Run  # noqa: E402
from kernelviz.core.code import Compiler, digest_of, packed  # noqa: E402
from kernelviz.core.machine_code import RESERVED_SHARED_BYTES  # noqa: E402
from kernelviz.formats import document, shipped_runs  # noqa: E402
from kernelviz.machine_code.cubin import read_cubin  # noqa: E402
from kernelviz.ops import catalogue  # noqa: E402

FILE = HERE / "explained_cases.msgpack.xz"
LADDERS = HERE.parents[1] / "docs" / "h200-ladders.jsonl.gz"
RUNS = HERE.parents[1] / "docs" / "runs"


@dataclass(frozen=True, kw_only=True)
class ExplainedPair:
    """Two variants of a recorded run at a problem. `run`: of the package, a file of docs/runs, or an id in docs/h200-ladders."""

    name: str
    run: str
    problem: Problem
    a: str
    b: str


PAIRS = (
    ExplainedPair(
        name="add",
        run="h200-add",
        problem=Problem(op="add", sizes={"n": 2**28}, dtype="fp32"),
        a="cuda_scalar",
        b="cuda_vec16",
    ),
    ExplainedPair(
        name="transpose",
        run="20261122-071433-ea4dbc",
        problem=Problem(op="transpose", sizes={"m": 16384, "n": 16384}, dtype="fp32"),
        a="cuda_naive",
        b="cuda_padded_tile",
    ),
    ExplainedPair(
        name="padding",
        run="20261122-071433-ea4dbc",
        problem=Problem(op="transpose", sizes={"m": 16384, "n": 16384}, dtype="fp32"),
        a="cuda_shared_tile",
        b="cuda_padded_tile",
    ),
    ExplainedPair(
        name="matmul",
        run="h200-matmul",
        problem=Problem(op="matmul", sizes={"m": 2048, "n": 2048, "k": 2048}, dtype="bf16"),
        a="triton_grouped",
        b="triton_warp_specialised",
    ),
    ExplainedPair(
        name="softmax",
        run="h200-softmax",
        problem=Problem(op="softmax", sizes={"m": 16384, "n": 8192}, dtype="bf16"),
        a="triton_online",
        b="triton_block_per_row",
    ),
    ExplainedPair(
        name="w4a16",
        run="h200-w4a16-28672x4096.kvz",
        problem=Problem(op="w4a16_matmul", sizes={"m": 16, "n": 28672, "k": 4096}, dtype="bf16"),
        a="triton_fused",
        b="cuda_mma_shuffled",
    ),
    ExplainedPair(
        name="shuffled",
        run="h200-w4a16-28672x4096.kvz",
        problem=Problem(op="w4a16_matmul", sizes={"m": 16, "n": 28672, "k": 4096}, dtype="bf16"),
        a="cuda_mma",
        b="cuda_mma_shuffled",
    ),
    ExplainedPair(
        name="scatter_add",
        run="20261122-055757-53ff3d",
        problem=Problem(op="scatter_add", sizes={"v": 8192, "t": 262144, "d": 1024}, dtype="bf16"),
        a="cuda_atomics",
        b="cuda_segments",
    ),
    ExplainedPair(
        name="long_rows",
        run="h200-softmax",
        problem=Problem(op="softmax", sizes={"m": 1024, "n": 131072}, dtype="bf16"),
        a="cuda_row",
        b="cuda_cluster",
    ),
)


class CompiledCase(msgspec.Struct, frozen=True, kw_only=True):
    """What a case compiles and launches. `source_digest`: of its variant when it was compiled."""

    problem: Problem
    variant: str
    source_digest: str
    code: tuple[CompiledCode, ...]
    kernels: tuple[Kernel, ...]
    cubins: dict[str, bytes]


class Wanted(msgspec.Struct, frozen=True):
    """A case to compile."""

    problem: Problem
    variant: str


def wanted() -> list[Wanted]:
    """The cases of all pairs, each once."""
    both = [Wanted(pair.problem, variant) for pair in PAIRS for variant in (pair.a, pair.b)]
    return list({(one.problem.key, one.variant): one for one in both}.values())


@cache
def run_of(name: str) -> Run:
    """The recorded run of a pair with the code of all variants of `PAIRS` at these problems."""
    pair = next(one for one in PAIRS if one.name == name)
    run = recorded(pair.run)
    compiled = {(one.problem.key, one.variant): one for one in compiled_cases()}
    results = []
    contents: dict[str, bytes] = {}
    for result in run.results:
        case = compiled.get((result.problem.key, result.variant))
        if case is not None:
            result = msgspec.structs.replace(result, code=case.code, kernels=_launches(result, case))
            contents |= case.cubins
        results.append(result)
    code: tuple[CodeContent, ...] = tuple(packed(content) for content in contents.values())
    return msgspec.structs.replace(run, results=tuple(results), code=code)


def _launches(result: Result, case: CompiledCase) -> tuple[Kernel, ...]:
    """The traced launches, or those of the compiled case where the run has none."""
    return result.kernels or case.kernels


@cache
def recorded(run: str) -> Run:
    if run in shipped_runs.names():
        return shipped_runs.load(run)
    if (RUNS / run).is_file():
        return run_files.read_one(RUNS / run)
    with gzip.open(LADDERS) as lines:
        for line in lines:
            if run.encode() in line[:400]:
                return document.decode(msgspec.json.encode(msgspec.json.decode(line)["run"]), most_bytes=None)
    raise AssertionError(f"{run} is not in {LADDERS.name}")


@cache
def compiled_cases() -> tuple[CompiledCase, ...]:
    """All cases: those of the file, and compiled now where a variant has changed since."""
    stored = msgspec.msgpack.decode(lzma.decompress(FILE.read_bytes()), type=tuple[CompiledCase, ...])
    current = [one for one in stored if one.source_digest == digest_now(one.problem, one.variant)]
    present = {(one.problem.key, one.variant) for one in current}
    return (*current, *compiled_now([one for one in wanted() if (one.problem.key, one.variant) not in present]))


def digest_now(problem: Problem, variant: str) -> str:
    return catalogue()[problem.op].variant_named(variant).source_digest()


def compiled_now(cases: Sequence[Wanted]) -> tuple[CompiledCase, ...]:
    """Compile in another process."""
    if not cases:
        return ()
    ended = subprocess.run(
        [sys.executable, str(Path(__file__)), "compile"],
        input=msgspec.json.encode(list(cases)),
        capture_output=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        timeout=250,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return msgspec.json.decode(ended.stdout, type=tuple[CompiledCase, ...])


class _Launches:
    """What a case launches, in order."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.codes: list[CompiledCode] = []
        self.cubins: dict[str, bytes] = {}

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def launched(
        self, name: str, cubin: bytes, compiler: Compiler, grid: Sequence[int], threads: int, shared_bytes: int
    ) -> None:
        file = read_cubin(cubin)
        kernel = next(k for k in file.kernels if k.name == name)
        if kernel.required_threads:  # a Triton kernel with warp roles has more threads than its num_warps says
            threads = prod(kernel.required_threads)
        x, y, z = (*grid, 1, 1)[:3]
        own_bytes = max(0, kernel.static_shared_bytes - RESERVED_SHARED_BYTES)
        self.kernels.append(
            Kernel(
                name=name,
                grid=(x, y, z),
                block=(threads, 1, 1),
                registers_per_thread=max(16, kernel.registers or 0),
                shared_memory_bytes=own_bytes + shared_bytes,
            )
        )
        digest = digest_of(cubin)
        self.cubins[digest] = cubin
        artifact = Artifact(kind="cubin", digest=digest, size_bytes=len(cubin))
        self.codes.append(
            CompiledCode(
                kernel=name,
                compiler=compiler,
                arch=file.architecture,
                shared_bytes=shared_bytes,
                artifacts=(artifact,),
            )
        )


def compiled_here(cases: Sequence[Wanted]) -> Iterator[CompiledCase]:
    """Compile in this process, which is of no other use from then on."""
    from kernelviz.measure.compile_ahead.case_compiler import CaseCompiler
    from kernelviz.measure.compile_ahead.nvrtc_compile import compile_into_cache
    from kernelviz.measure.compile_ahead.nvrtc_driver import CompileOnlyNvrtc
    from kernelviz.measure.compile_ahead.stand_in import gpu_of, stand_ins
    from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver
    from kernelviz.measure.precompiled.compilation import facts_of
    from kernelviz.ops.kernels import nvrtc

    launches = _Launches()
    loaded: dict[str, tuple[bytes, int]] = {}

    class Nvrtc(CompileOnlyNvrtc):
        def kernel(self, source: Any, name: str, defines: Any, shared_bytes: int, cluster: int, specific: bool) -> Any:
            return name, compile_into_cache(source, nvrtc.architecture(self.arch, specific), defines, name)

        def launch(self, kernel: Any, blocks: Any, threads: Any, cluster: int, shared_bytes: int, args: object) -> None:  # type: ignore[override]
            name, cubin = kernel
            grid = blocks if isinstance(blocks, tuple) else (blocks,)
            size = prod(threads) if isinstance(threads, tuple) else threads
            launches.launched(name, cubin, "nvrtc", grid, size, shared_bytes)

    class Triton(CompileOnlyDriver):
        def launcher_cls(self, source: Any, metadata: Any) -> Any:
            def launch(*arguments: Any) -> None:
                cubin, shared_bytes = loaded[metadata.name]
                launches.launched(metadata.name, cubin, "triton", arguments[:3], 32 * metadata.num_warps, shared_bytes)

            return launch

    device = shipped_runs.load("h200-add").environment.device
    facts = facts_of(device)
    CaseCompiler(facts)
    nvrtc.active = Nvrtc(f"sm_{facts.arch}", device.multiprocessors or 1)
    from triton.runtime import driver

    def load(name: str, cubin: bytes, shared_bytes: int) -> None:
        loaded[name] = cubin, shared_bytes

    driver.set_active(Triton(facts.arch, facts.triton_properties, load))
    for case in cases:
        op = catalogue()[case.problem.op]
        variant = op.variant_named(case.variant)
        with gpu_of(facts):
            launch = variant.bind(*stand_ins(op.inputs, case.problem), **variant.keywords(case.problem))
            launches.clear()
            launch()
        yield CompiledCase(
            problem=case.problem,
            variant=case.variant,
            source_digest=digest_now(case.problem, case.variant),
            code=tuple(launches.codes),
            kernels=tuple(launches.kernels),
            cubins=launches.cubins,
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["compile"]:
        asked = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Wanted])
        sys.stdout.buffer.write(msgspec.json.encode(list(compiled_here(asked))))
    else:
        FILE.write_bytes(lzma.compress(msgspec.msgpack.encode(compiled_now(wanted())), preset=9))
