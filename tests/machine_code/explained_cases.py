"""Compile cases for an H200 without a GPU, and print a run whose results have their code and launches.

``python tests/machine_code/explained_cases.py < REQUEST > DOCUMENT``: a JSON list of cases, then a document with code. It is a
process of its own, because it replaces the drivers of Triton and NVRTC. The product's own bind functions are called.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

from kernelviz.core import Artifact, CodeContent, CompiledCode, Kernel, Result, Run  # noqa: E402
from kernelviz.core.code import digest_of, packed  # noqa: E402
from kernelviz.formats import document, shipped_runs  # noqa: E402

H200 = "h200-add"
"""The recorded run whose device the cases are compiled for."""


class Wanted(msgspec.Struct, frozen=True):
    """A case to compile. `direction` is forward."""

    op: str
    variant: str
    sizes: dict[str, int]
    dtype: str


def compiled_runs(cases: Sequence[Wanted]) -> dict[str, Run]:
    """A run of each op whose results have no times, but the code and the launches of these cases. Compiles in another process."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(
        [sys.executable, str(Path(__file__))],
        input=msgspec.json.encode(list(cases)),
        capture_output=True,
        check=False,
        env=environment,
        timeout=250,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    documents = msgspec.json.decode(ended.stdout, type=list[msgspec.Raw])
    runs = [document.decode(bytes(one), most_bytes=None) for one in documents]
    return {run.plan.op: run for run in runs}


def with_code(result: Result, compiled: Result) -> Result:
    """A measured result with the code, and the launches where the tracer's are not known, of one that was compiled here."""
    return msgspec.structs.replace(result, code=compiled.code, kernels=result.kernels or compiled.kernels)


class _Launches:
    """What a case compiles and launches, in order."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.codes: list[CompiledCode] = []
        self.contents: dict[str, bytes] = {}

    def clear(self) -> None:
        self.kernels, self.codes = [], []

    def launched(
        self,
        name: str,
        cubin: bytes,
        compiler: str,
        grid: Sequence[int],
        threads: int,
        shared_bytes: int,
        warps: int | None,
    ) -> None:
        from kernelviz.machine_code.cubin import read_cubin
        from kernelviz.machine_code.occupancy import RESERVED_SHARED_BYTES

        file = read_cubin(cubin)
        static = next(k.static_shared_bytes for k in file.kernels if k.name == name)
        own = max(0, static - RESERVED_SHARED_BYTES)
        kernel = next(k for k in file.kernels if k.name == name)
        if kernel.required_threads:  # a specialised Triton kernel has more threads than num_warps says
            threads = prod(kernel.required_threads)
        size = (*grid, 1, 1)[:3]
        self.kernels.append(
            Kernel(
                name=name,
                grid=(size[0], size[1], size[2]),
                block=(threads, 1, 1),
                registers_per_thread=max(16, kernel.registers or 0),
                shared_memory_bytes=own + shared_bytes,
            )
        )
        digest = digest_of(cubin)
        self.contents[digest] = cubin
        artifact = Artifact(kind="cubin", digest=digest, size_bytes=len(cubin))
        self.codes.append(
            CompiledCode(
                kernel=name,
                compiler=compiler,  # type: ignore[arg-type]
                arch=file.architecture,
                warps=warps,
                shared_bytes=shared_bytes,
                artifacts=(artifact,),
            )
        )


def _main(cases: Sequence[Wanted]) -> list[Run]:
    from triton.runtime import driver

    from kernelviz.core import Problem, Timing
    from kernelviz.measure.compile_ahead import nvrtc_compile
    from kernelviz.measure.compile_ahead.case_compiler import CaseCompiler
    from kernelviz.measure.compile_ahead.nvrtc_driver import CompileOnlyNvrtc
    from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver
    from kernelviz.measure.precompiled.compilation import facts_of
    from kernelviz.ops import op_named
    from kernelviz.ops.kernels import nvrtc

    launches = _Launches()
    template = shipped_runs.load(H200)
    facts = facts_of(template.environment.device)

    class Nvrtc(CompileOnlyNvrtc):
        def kernel(
            self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
        ) -> Any:
            arch = nvrtc.architecture(self.arch, specific)
            return name, nvrtc_compile.compile_into_cache(source, arch, defines, name)

        def launch(self, kernel: Any, blocks: Any, threads: Any, cluster: int, shared_bytes: int, args: object) -> None:
            name, cubin = kernel
            grid = blocks if isinstance(blocks, tuple) else (blocks,)
            size = prod(threads) if isinstance(threads, tuple) else threads
            launches.launched(name, cubin, "nvrtc", grid, size, shared_bytes, None)

    class Triton(CompileOnlyDriver):
        def launcher_cls(self, source: Any, metadata: Any) -> Any:
            def launch(*arguments: Any) -> None:
                of = metadata if hasattr(metadata, "num_warps") else None
                name, cubin, shared_bytes = (
                    loaded[-1] if of is None else next(x for x in loaded[::-1] if x[0] == of.name)
                )
                warps = of.num_warps if of is not None else 4
                launches.launched(name, cubin, "triton", arguments[:3], 32 * warps, shared_bytes, warps)

            return launch

    loaded: list[tuple[str, bytes, int]] = []
    compiler = CaseCompiler(facts)
    nvrtc.active = Nvrtc(f"sm_{facts.arch}", template.environment.device.multiprocessors or 132)
    driver.set_active(
        Triton(facts.arch, facts.triton_properties, lambda name, cubin, shared: loaded.append((name, cubin, shared)))
    )
    results = []
    for case in cases:
        problem = Problem(op=case.op, sizes=case.sizes, dtype=case.dtype)
        op = op_named(case.op)
        variant = op.variant_named(case.variant)
        launches.clear()
        compiler.compile(op, variant, problem)
        launches.clear()
        from kernelviz.measure.compile_ahead.stand_in import gpu_of, stand_ins

        with gpu_of(facts):
            launch = variant.bind(*stand_ins(op.inputs, problem), **variant.keywords(problem))
            launches.clear()
            launch()
        results.append(
            Result(
                problem=problem,
                variant=case.variant,
                outcome=Timing(),
                cost=op.cost_of(problem),
                kernels=tuple(launches.kernels),
                code=tuple(launches.codes),
                backend=variant.backend,
                source_digest=variant.source_digest(),
            )
        )
    contents = tuple(packed(c) for c in launches.contents.values())
    return [
        _run(template, op, [r for r in results if r.problem.op == op], contents)
        for op in dict.fromkeys(c.op for c in cases)
    ]


def _run(template: Run, op: str, results: Sequence[Result], contents: Sequence[CodeContent]) -> Run:
    digests = {a.digest for r in results for code in r.code or () for a in code.artifacts}
    plan = msgspec.structs.replace(
        template.plan,
        problems=tuple({r.problem.key: r.problem for r in results}.values()),
        variants=tuple(dict.fromkeys(r.variant for r in results)),
        baseline=results[0].variant,
    )
    return msgspec.structs.replace(
        template,
        id=f"compiled-{op}",
        plan=plan,
        results=tuple(results),
        code=tuple(c for c in contents if c.digest in digests),
    )


if __name__ == "__main__":
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Wanted])
    sys.stdout.buffer.write(msgspec.json.encode([msgspec.Raw(document.encode(run)) for run in _main(wanted)]))
