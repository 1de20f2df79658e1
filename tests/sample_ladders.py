"""Ladders made without a device: of `add` with real sources, and with texts that try to be more than text."""

from __future__ import annotations

import sample_code
import sample_runs as samples
from msgspec.structs import replace

from kernelviz.core import CompiledCode, Run
from kernelviz.core.code import packed
from kernelviz.metrics.ladder import DeclaredVariant, Ladder, PublishedStep, PublishedValue, ladder_at

(PROBLEM,) = samples.problems("add", [{"n": 2**24}], "fp32")
SHARES = {"torch_eager": 0.9, "cuda_scalar": 0.3, "cuda_vec16": 0.8, "cuda_vec16_unrolled": 0.81, "cuda_adaptive": 0.81}
SOURCES = {
    "cuda_scalar": "__global__ void scalar(float* x) {\n    x[0] = 1;\n}\n",
    "cuda_vec16": "__global__ void vec16(float4* x) {\n    x[0].x = 1;\n}\n",
    "cuda_vec16_unrolled": "__global__ void unrolled(float4* x) {\n    x[1].x = 1;\n}\n",
}
KERNELS = {"cuda_scalar": "scalar", "cuda_vec16": "vec16", "cuda_vec16_unrolled": "unrolled"}


def run(hostile: str = "", id: str = "ladder") -> Run:
    """A ladder with sources and macros, a wrong rung, and one that failed. `hostile`: added to every text that a document can
    choose."""
    results = []
    contents = []
    for name, share in SHARES.items():
        result = samples.timed(PROBLEM, name, share, again=name == "torch_eager")
        if name in SOURCES:
            content = f"{SOURCES[name]}// {hostile}\n".encode()
            artifact = sample_code.artifact("source", content, f"add{hostile}.cu")
            code = CompiledCode(
                kernel=f"{KERNELS[name]}{hostile}",
                compiler="nvrtc",
                defines={f"TILE{hostile}": f"{name}{hostile}"},
                artifacts=(artifact,),
            )
            contents.append(packed(content))
            result = replace(result, code=(code,), backend="cuda")
        results.append(result)
    results[3] = replace(
        samples.failed(PROBLEM, "cuda_vec16_unrolled", "wrong", f"it is wrong{hostile}"), code=results[3].code
    )
    results.append(samples.failed(PROBLEM, "triton_block", "crash", f"it died{hostile}"))
    made = samples.run(
        results, id=id, op="add", sizes=[PROBLEM.sizes], dtype="fp32", shares={}, title=f"a ladder{hostile}"
    )
    device = replace(samples.H200, name=f"NVIDIA H200{hostile}")
    environment = replace(made.environment, device=device, host=f"host{hostile}", versions={f"torch{hostile}": hostile})
    return replace(made, environment=environment, note=f"a note{hostile}", code=tuple(contents))


def ladder(hostile: str = "") -> Ladder:
    """The ladder of `run`, with published numbers whose texts are hostile, too."""
    made = run(hostile)
    published = PublishedStep(
        1.5, f"cuda_scalar{hostile}", f"example.org{hostile}", f"a GPU{hostile}", PROBLEM, f"a remark{hostile}"
    )
    value = PublishedValue(1e12, "B/s", f"example.org{hostile}", None, hostile)
    declared = [
        DeclaredVariant("torch_eager", "torch", "the library"),
        DeclaredVariant("triton_block", "triton", f"another idea{hostile}"),
        *(
            DeclaredVariant(
                name, "cuda", f"the idea of {name}{hostile}", published=(published,), published_values=(value,)
            )
            for name in SHARES
            if name.startswith("cuda")
        ),
    ]
    return ladder_at(made, PROBLEM, declared, made.environment.roofs)


def ladder_of(made: Run) -> Ladder:
    """A ladder of any run: all its variants are rungs of one backend but those of libraries."""
    problem = made.plan.problems[0] if made.plan.problems else PROBLEM
    libraries = ("composite_eager", "torch_eager", "torch_compile")
    declared = [DeclaredVariant(v, "torch" if v in libraries else "cuda", f"idea of {v}") for v in made.plan.variants]
    return ladder_at(made, problem, declared, made.environment.roofs)
