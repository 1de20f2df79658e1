"""Run in a process of its own: capture the code of Triton and NVRTC variants on an H100 that is not there, and print it as JSON.

Each variant is bound twice, so that the second capture sees kernels from the process's caches.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace as Namespace
from typing import Any

import msgspec
import triton
from cases import compile_problems
from checking import bind, inputs_of
from compiled_only import NvrtcDriver, triton_driver
from cuda import core
from triton.runtime.jit import JITFunction

from kernelviz.core import CompiledCode
from kernelviz.core.code import unpacked
from kernelviz.measure.compiled_code import nvrtc_kernels
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.measure.compiled_code.capture import Capture
from kernelviz.measure.compiled_code.inductor_graphs import InductorGraphs
from kernelviz.ops import catalogue
from kernelviz.ops.cumsum import triton as kernels
from kernelviz.ops.kernels import nvrtc

ARCH = "sm_90"
VARIANTS = (
    ("cumsum", "triton_three_kernels"),
    ("cumsum", "cuda_three_kernels"),
    ("row_sum", "cuda_slab"),
    ("matmul", "gluon_warp_specialised"),
    ("add", "torch_eager"),
)


class LaunchNotes(NvrtcDriver):
    """Notes the dynamic shared memory of each launch."""

    launched_bytes: list[int]

    def launch(self, *arguments: Any) -> None:
        self.launched_bytes.append(arguments[4])


def captured(op_name: str, name: str) -> dict[str, Any]:
    op = catalogue()[op_name]
    variant = op.variant_named(name)
    problem = next(iter(compile_problems(op, variant, ARCH)), None) or op.problem({"n": 64}, "fp32")
    with Capture(variant) as capture:
        launch = bind(variant, problem, inputs_of(op, problem))
        capture.bound()
        launch()
    codes, contents = capture.code()
    texts = {c.digest: unpacked(c).decode("latin-1") for c in contents}
    return {"codes": msgspec.to_builtins(codes), "contents": texts}


def launched_by_inductor(names: tuple[str, str]) -> list[CompiledCode]:
    """The descriptions of kernels as inductor's launchers hold them: with Triton's own launcher, and with inductor's static one,
    which drops what Triton made."""
    compiled = [next(iter(getattr(kernels, name).device_caches[0][0].values())) for name in names]
    static = Namespace(name=names[1], hash=compiled[1].hash, num_warps=4, shared=compiled[1].metadata.shared)
    other, chosen = Namespace(name=names[1], hash=compiled[0].hash, num_warps=8, shared=0), object()
    watcher, props = InductorGraphs(), Namespace(type="cuda", cc=90)
    for tuner in (
        Namespace(launchers=[Namespace(bin=compiled[0])], device_props=props),
        Namespace(
            launchers=[Namespace(config=chosen)],
            compile_results=[Namespace(kernel=other, config=object()), Namespace(kernel=static, config=chosen)],
            device_props=props,
        ),
        Namespace(launchers=[], compile_results=[Namespace(kernel=Namespace(name="x", hash="../x"))]),
    ):
        watcher._launched(tuner, None)
    return list(watcher.codes(Artifacts()))


def main() -> dict[str, Any]:
    triton.runtime.driver.set_active(triton_driver(ARCH))
    nvrtc.active = driver = LaunchNotes(ARCH)
    before = JITFunction.run, nvrtc.active, core.Program
    answer: dict[str, Any] = {}
    for op, name in VARIANTS:
        driver.launched_bytes = []
        answer[name], again = captured(op, name), captured(op, name)
        answer[name]["same again"] = answer[name] == again
        answer[name]["launched_bytes"] = driver.launched_bytes
    answer["launched by inductor"] = [
        msgspec.to_builtins(code) for code in launched_by_inductor(("tile_sums_kernel", "before_tiles_kernel"))
    ]
    cached = list(nvrtc.cache_folder().glob("*.ptx"))
    made_with_cubin = {path.name: path.read_bytes() for path in cached}
    for path in cached:
        path.unlink()
    captured("cumsum", "cuda_three_kernels")
    captured("row_sum", "cuda_slab")
    answer["ptx alone is the same"] = {
        p.name: p.read_bytes() for p in nvrtc.cache_folder().glob("*.ptx")
    } == made_with_cubin
    answer["hooks are gone"] = before == (JITFunction.run, nvrtc.active, core.Program) and nvrtc.active is driver
    answer["versions"] = [triton.__version__, nvrtc_kernels._version()]
    return answer


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(main()).decode())
