"""Compile every own kernel of the catalogue and compare its facts with cuobjdump's.

``python tests/machine_code/check_catalogue.py [OP ...]`` compiles the Triton and CUDA C++ kernels of all ops, or of the given
ones, for sm_80, sm_90 and sm_100, as tests/ops/compiled_only.py does, but each for every architecture. It prints what differs,
each opcode without a class, and a line for each kernel with its main loops, and ends with 1 if something differs. With
KERNELVIZ_CATALOGUE_CUBINS=FOLDER the cubins are kept there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ops"), str(HERE.parents[1])]


def compile_all(names: list[str], folder: Path) -> None:
    """Leave the cubins of the ops in the caches of Triton and of our NVRTC wrapper, below the folder."""
    os.environ |= {"TRITON_CACHE_DIR": str(folder), "KERNELVIZ_CACHE": str(folder), "TRITON_DISABLE_LINE_INFO": "1"}
    import compiled_only

    # What a GPU test proved, or what an earlier architecture has, is compiled again.
    compiled_only.Report.proven = lambda self, op, variant: set()  # type: ignore[method-assign]
    compiled_only.same_for_every_architecture = lambda source: False  # type: ignore[assignment]
    for arch in compiled_only.SHARED_BYTES:
        for compiler in ("triton", "nvrtc"):
            child = os.fork()
            if child == 0:
                sys.stdout = (folder / f"{arch}-{compiler}.jsonl").open("w")
                compiled_only.main(arch, compiler, names, {})
                sys.stdout.close()
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
                sys.exit(f"{arch} {compiler}: see above")


def check_resources(folder: Path) -> int:
    """Print whose resources differ from cuobjdump's; the number of such kernels."""
    from resource_usage import as_cuobjdump_says, resource_usage

    from kernelviz.machine_code.cubin import read_cubin

    kernels = differing = 0
    for file in sorted(folder.rglob("*.cubin")):
        expected = resource_usage(file.read_bytes())
        for kernel in read_cubin(file.read_bytes()).kernels:
            kernels += 1
            if (actual := as_cuobjdump_says(kernel)) != expected[kernel.name]:
                differing += 1
                print(f"DIFFERS {file} {kernel.name}: {actual}, cuobjdump {expected[kernel.name]}")  # noqa: T201
    print(f"resources of {kernels} kernels, {differing} differ from cuobjdump's")  # noqa: T201
    return differing


def check_techniques(folder: Path) -> int:
    """Print which declared techniques the machine code of a variant does not show; the number of such variants and targets."""
    from compiled_only import SHARED_BYTES

    from kernelviz.machine_code.techniques import expected_on
    from kernelviz.ops import catalogue

    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    shown = {(line["arch"], line["case"]): line["techniques"] for line in lines if "techniques" in line}
    checked = missing = 0
    for op in catalogue().values():
        for variant in op.variants:
            for arch in SHARED_BYTES if variant.techniques else ():
                seen = shown.get((arch, f"techniques of {op.name} {variant.name}"))
                if seen is not None:
                    checked += 1
                    if absent := expected_on(variant.techniques, arch) - set(seen):
                        missing += 1
                        print(f"NOT SHOWN {op.name} {variant.name} {arch}: {', '.join(sorted(absent))}")  # noqa: T201
    print(f"techniques of {checked} variants and targets, {missing} do not show all")  # noqa: T201
    return missing


def check_instructions(folder: Path) -> None:
    """Print the main loops of each kernel, and each opcode without a class."""
    from kernelviz.machine_code.facts import facts_of_many

    files = {hashlib.sha256(file.read_bytes()).digest(): file for file in sorted(folder.rglob("*.cubin"))}.values()
    for file, kernels in zip(files, facts_of_many([file.read_bytes() for file in files]), strict=True):
        for facts in kernels:
            for opcode, number in facts.whole.unknown.items():
                print(f"UNKNOWN {file} {facts.name}: {opcode} {number} times")  # noqa: T201
            loops = [
                " ".join(f"{r.first:#x}-{r.last:#x}" for r in role.main_loop.ranges) + f" depth {role.main_loop.depth}"
                if role.main_loop
                else "no loop"
                for role in facts.roles
            ]
            print(f"{facts.architecture} {facts.name} {file}: {'; '.join(loops)}")  # noqa: T201


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kernelviz-catalogue-") as given:
        from kernelviz.ops import catalogue

        target = Path(os.environ.get("KERNELVIZ_CATALOGUE_CUBINS") or given)
        compile_all(sys.argv[1:] or list(catalogue()), target)
        differing = check_resources(target) + check_techniques(target)
        check_instructions(target)
        sys.exit(differing > 0)
