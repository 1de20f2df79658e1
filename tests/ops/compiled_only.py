"""Run in a process of its own, with ``all`` or ``seed=COMMIT`` and names of ops: their Triton and CUDA C++ variants "called" on a
GPU that is not there, of each architecture in turn.

Triton's driver is replaced through its own seam (`driver.set_active`), ours through `nvrtc.active`, by ones that name the
target, compile to a cubin as always, check shared memory against the target's limit, and launch nothing. So what is compiled
is what the product would compile: the same bind, the same configuration, the same specialisation on sizes and strides.
Prints one JSON line a case: {"arch", "case", "ok", "message", "kernels"}, with "refused" for sizes that the variant refuses, and
one for each variant that declares techniques: {"arch", "case", "techniques"}, what the machine code of its kernels shows (null if
not all were compiled for this architecture).

With ``seed=``, what is on record (`compile_record`) is not compiled but said again, with "on_record", except a sample. Each line
has the "key" of its entry.

What docs/gpu-report.json proves is not compiled again: for the architecture of that report, a CUDA C++ source as it was when it
passed there, with definitions that the sizes of the GPU tests ask for, by the same NVRTC. A changed source is compiled in full.

A CUDA C++ source in which nothing of ours asks for the architecture is compiled for the first architecture that asks for its
definitions, and not again for later ones: what is valid PTX for one architecture is valid for every later one (CUDA C++
Programming Guide, "PTX Compatibility"). Shared memory is checked against the limit of each.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import torch
import triton
from cases import compile_problems, compiled_by, large_sizes, odd_sizes, ways
from checking import bind, inputs_of
from compile_record import Line, in_sample, key_of, recorded
from gpu_report import path, read

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import Technique
from kernelviz.core.problem import Problem
from kernelviz.machine_code.facts import facts_of_many
from kernelviz.machine_code.techniques import expected_on, techniques_of
from kernelviz.measure.compile_ahead.nvrtc_driver import CompileOnlyNvrtc
from kernelviz.measure.compile_ahead.triton_driver import CompileOnlyDriver
from kernelviz.measure.session.inputs import allocate
from kernelviz.ops import Op, Variant
from kernelviz.ops.kernels import nvrtc

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": shared memory a thread block may have.
SHARED_BYTES = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "sm_100": 227 * 1024, "sm_120": 99 * 1024}
MULTIPROCESSORS = 132
MOST_GPU_BYTES = 2**30
"""Larger problems of the GPU tests are left out here; they ask for no other definitions than smaller ones."""
Configuration = tuple[Path, str, tuple[tuple[str, str], ...]]
"""What NVRTC is given: a source and its definitions."""
OF_AN_ARCHITECTURE = re.compile(r"__CUDA_ARCH|__CUDA_MINIMUM_ARCH|\bNV_(?:IF|DISPATCH)_|\bNV_(?:IS|PROVIDES|HAS)_")
"""What a source says that is compiled differently for different architectures."""
compiled: list[str] = []
cubins: list[bytes] = []
"""Of the kernels that the current case compiled."""


def _loaded(name: str, cubin: bytes, shared_bytes: int) -> None:
    compiled.append(f"{name} {len(cubin)} B cubin, {shared_bytes} B shared")
    cubins.append(cubin)


def triton_driver(arch: str) -> CompileOnlyDriver:
    """Triton's driver for that architecture; it notes the kernels that it would load."""
    properties = {"max_shared_mem": SHARED_BYTES[arch], "multiprocessor_count": MULTIPROCESSORS, "warpSize": 32}
    return CompileOnlyDriver(int(arch.removeprefix("sm_")), properties, _loaded)


def _forget_loaded() -> None:
    """Triton loads a kernel once in a process. Forget all of them, so that each variant shows its own: conv_bias_relu by
    triton_stepwise showed none of the kernel that conv2d by triton_implicit had loaded before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kernelviz.ops."):
            for value in vars(module).values():
                if isinstance(value, triton.runtime.JITFunction):
                    value.device_caches.clear()


@functools.cache
def same_for_every_architecture(source: Path) -> bool:
    """Whether neither the source nor a header of ours that it includes asks for the architecture."""
    return not any(OF_AN_ARCHITECTURE.search(file.read_text()) for file in nvrtc.with_headers(source))


class NvrtcDriver(CompileOnlyNvrtc):
    """Notes the kernels that it compiles, and compiles none that is proven, or valid because it was compiled before."""

    def __init__(self, arch: str) -> None:
        super().__init__(arch, MULTIPROCESSORS, lambda name, cubin, shared_bytes: cubins.append(cubin))
        self.proven: set[Configuration] = set()
        self.skipped = 0
        """Kernels that were not compiled again, because they are proven or were compiled for an earlier architecture."""
        self.earlier: dict[Configuration, str] = {}
        """The architecture that a kernel was compiled for, where the result is valid for every later one."""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        assert shared_bytes <= SHARED_BYTES[self.arch]
        configuration = source, name, tuple(sorted(defines.items()))
        if configuration in self.proven:
            self._compiled_here(configuration)
            self.skipped += 1
            compiled.append(f"{name} compiled on a GPU, {shared_bytes} B dynamic shared")
            return name
        earlier = self.earlier.get(configuration)
        if earlier is not None and int(earlier.removeprefix("sm_")) < int(self.arch.removeprefix("sm_")):
            self.skipped += 1
            compiled.append(f"{name} compiled for {earlier}, {shared_bytes} B dynamic shared")
            return name
        super().kernel(source, name, defines, shared_bytes, cluster, specific)
        cubin = cubins[-1]
        assert cubin.startswith(b"\x7fELF")
        assert name.encode() in cubin
        self._compiled_here(configuration)
        compiled.append(f"{name} {len(cubin)} B cubin, {shared_bytes} B dynamic shared")
        return name

    def _compiled_here(self, configuration: Configuration) -> None:
        if same_for_every_architecture(configuration[0]):
            self.earlier.setdefault(configuration, self.arch)


class Asked(NvrtcDriver):
    """Notes what it is asked to compile, and compiles nothing."""

    def kernel(
        self, source: Path, name: str, defines: Mapping[str, str], shared_bytes: int, cluster: int, specific: bool
    ) -> Any:
        self.proven.add((source, name, tuple(sorted(defines.items()))))
        return name


class Report:
    """What docs/gpu-report.json proves of an architecture."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.entries = read(path())
        written = json.loads(path().read_text()) if self.entries else {}
        same_arch = "sm_{}{}".format(*written.get("compute_capability", (0, 0))) == arch
        nvrtc_then = written.get("versions", {}).get("nvidia-cuda-nvrtc")
        self.comparable = same_arch and nvrtc_then == metadata.version("nvidia-cuda-nvrtc")

    def proven(self, op: Op, variant: Variant) -> set[Configuration]:
        """What the GPU tests compiled of a variant as it is now: at odd and large sizes, in every precision and direction."""
        if not self.comparable or variant.backend != "cuda" or variant.slow_compile:
            return set()
        nvrtc.active = asked = Asked(self.arch)
        for way in ways(op, variant):
            entry = self.entries.get((op.name, variant.name, way.dtype, way.compute or "", way.direction))
            now = way.variant(op, variant).source_digest()
            if entry is not None and entry.passed and entry.source_digest == now:
                for sizes in (*odd_sizes(op), *large_sizes(op)):
                    _ask(op, variant, way.problem(op, sizes))
        return asked.proven


def _ask(op: Op, variant: Variant, problem: Problem) -> None:
    """Bind and call on uninitialised tensors."""
    directed = op.of(problem)
    if directed.tensor_bytes(problem) > MOST_GPU_BYTES:
        return
    try:
        bind(variant, problem, allocate(directed.inputs, problem, torch.device("cpu")))()
    except BadField:
        return  # a size that the variant refuses


def main(
    arch: str,
    compiler: Literal["triton", "nvrtc"],
    names: Sequence[str],
    earlier: dict[Configuration, str],
    seed: str | None = None,
) -> None:
    """Write the lines of all variants of these ops. `seed`: those on record are said again, but for its sample; None: all are
    compiled."""
    driver, report = NvrtcDriver(arch), Report(arch)
    driver.earlier = earlier
    if compiler == "triton":
        triton.runtime.driver.set_active(triton_driver(arch))
    keys: dict[str, str] = {}
    with_techniques: dict[str, list[bytes]] = {}
    not_all_compiled: set[str] = set()
    for op, variant in compiled_by(compiler):
        if arch not in variant.targets or op.name not in names:
            continue
        own_name = f"{op.name} {variant.name}"
        keys[own_name] = key = key_of(op, variant, arch, compiler)
        if seed is not None and key in recorded() and not in_sample(key, seed):
            for line in recorded()[key]:
                _write(line | {"key": key, "on_record": True})
            continue
        proven = report.proven(op, variant)
        nvrtc.active = driver
        driver.skipped = 0
        own_cubins = with_techniques.setdefault(own_name, []) if variant.techniques else []
        if compiler == "triton":
            _forget_loaded()
        for problem in compile_problems(op, variant, arch):
            # Of a variant that declares techniques, something is compiled for its first target, proven or not.
            nothing_to_show = variant.techniques and variant.targets[0] == arch and not own_cubins
            driver.proven = set() if nothing_to_show else proven
            compiled.clear()
            cubins.clear()
            name = f"{variant.name} | {problem.key}"
            line = {"arch": arch, "case": name, "ok": True, "message": "", "key": key}
            try:
                bind(variant, problem, inputs_of(op, problem))()
                line["kernels"] = list(compiled)
            except BadField as error:
                line |= {"refused": True, "message": str(error)}
            except Exception as error:  # one kernel that does not compile must not hide the others
                line |= {"ok": False, "message": f"{type(error).__name__}: {error}"[:2000]}
            own_cubins.extend(cubins)
            _write(line)
        if driver.skipped:
            not_all_compiled.add(own_name)
    shown = techniques(with_techniques)  # of all variants at once: nvdisasm takes 0.4 s of processor time to start
    for op, variant in compiled_by(compiler):
        name = f"{op.name} {variant.name}"
        if name not in shown or expected_on(variant.techniques, arch) <= set(shown[name] or ()):
            continue
        if variant.targets[0] == arch:
            shown[name] = _techniques_at_more_sizes(driver, op, variant, arch)
        elif name in not_all_compiled or seed:  # in a sample, what was compiled for another architecture is not there
            shown[name] = None  # what was not compiled here may show the techniques
    for name, seen in shown.items():
        _write({"arch": arch, "case": f"techniques of {name}", "techniques": seen, "key": keys[name]})


def _write(line: Line) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _techniques_at_more_sizes(driver: NvrtcDriver, op: Op, variant: Variant, arch: str) -> list[Technique] | None:
    """What a variant shows at the sizes that are compiled for the main target, up to the one that shows all that it declares."""
    nvrtc.active = driver
    driver.proven = set()
    own_cubins: list[bytes] = []
    # Triton keeps what it compiled for another op with the same kernel and sizes, and then there is no cubin.
    for kernel in (one for one in gc.get_objects() if isinstance(one, triton.runtime.JITFunction)):
        kernel.device_caches.clear()
    for problem in compile_problems(op, variant):
        cubins.clear()
        with contextlib.suppress(BadField):  # a size that the variant refuses
            bind(variant, problem, inputs_of(op, problem))()
        own_cubins.extend(cubins)
        if _shows(own_cubins, variant, arch):
            break
    return techniques({"": own_cubins})[""]


def _shows(own_cubins: Sequence[bytes], variant: Variant, arch: str) -> bool:
    """Whether the cubins show the techniques that the variant declares."""
    shown = techniques({"": list(own_cubins)})[""]
    return shown is not None and expected_on(variant.techniques, arch) <= set(shown)


_techniques: dict[bytes, frozenset[Technique]] = {}
"""Of each cubin that was disassembled."""


def techniques(cubins_of: Mapping[str, list[bytes]]) -> dict[str, list[Technique] | None]:
    """The techniques that the cubins of each variant show together; None for a variant without a cubin."""
    new = sorted({cubin for several in cubins_of.values() for cubin in several} - _techniques.keys())
    for cubin, kernels in zip(new, facts_of_many(new), strict=True):
        _techniques[cubin] = frozenset[Technique]().union(*map(techniques_of, kernels))
    return {
        name: sorted(frozenset[Technique]().union(*(_techniques[c] for c in several))) if several else None
        for name, several in cubins_of.items()
    }


if __name__ == "__main__":
    how, *chosen = sys.argv[1:]
    the_seed = None if how == "all" else how.removeprefix("seed=")
    for arch in SHARED_BYTES:
        # Triton keeps what it compiled for a device, whatever its architecture: each gets a process, and torch is imported once.
        child = os.fork()
        if child == 0:
            main(arch, "triton", chosen, {}, the_seed)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
            sys.exit(f"{arch}: see above")
    earlier: dict[Configuration, str] = {}
    for arch in sorted(SHARED_BYTES, key=lambda a: int(a.removeprefix("sm_"))):
        main(arch, "nvrtc", chosen, earlier, the_seed)
