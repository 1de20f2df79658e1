"""Compare the machine code of two versions of a compiler over all Triton variants of the catalogue, without a GPU.

    python tests/machine_code/compare_compilers.py collect A.kernels     with one version of Triton installed
    python tests/machine_code/compare_compilers.py collect B.kernels     with another one, or with TRITON_PTXAS_PATH set
    python tests/machine_code/compare_compilers.py compare A.kernels B.kernels

PYTHONPATH must name the folders tests and tests/ops. The result is in docs/compilers.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from kernelviz.core.machine_code import FactDifference
from kernelviz.machine_code.differences import fact_differences
from kernelviz.machine_code.facts import facts_of_many
from kernelviz.measure.precompiled.kernels import decoded, encoded
from kernelviz.text.code_differences import describe_fact_difference

ARCH = "sm_90"


def collect(file: Path) -> str:
    """Compile every kernel of every Triton variant that has this target."""
    import triton
    from cases import compile_problems, variants
    from checking import bind, inputs_of
    from compiled_only import triton_driver

    from kernelviz.measure.precompiled.triton_kernels import collected

    triton.runtime.driver.set_active(triton_driver(ARCH))
    with collected() as kernels:
        for op, variant in variants("triton"):
            if ARCH in variant.targets:
                for problem in compile_problems(op, variant, ARCH):
                    bind(variant, problem, inputs_of(op, problem))()
    file.write_text(encoded(list(kernels.values())))
    return f"{len(kernels)} kernels by Triton {triton.__version__}"


def compare(a: Path, b: Path) -> str:
    """How many kernels differ in which facts, and every difference of accesses, copies, techniques and local memory."""
    first, second = decoded(a.read_text()), decoded(b.read_text())
    both = sorted(first.keys() & second.keys())
    facts = iter(facts_of_many([side[key].cubin for key in both for side in (first, second)]))
    lines: list[str] = []
    counts: Counter[str] = Counter()
    same = 0
    for key in both:
        differences = fact_differences(next(facts)[0], next(facts)[0])
        same += not differences
        counts.update({f"{d.region} {d.fact}" for d in differences})
        lines += [f"{first[key].kernel}: {describe_fact_difference(d)}" for d in differences if _is_listed(d)]
    head = f"{len(both)} kernels in both files (A has {len(first)}, B {len(second)}); no fact differs in {same}"
    return "\n".join((head, *(f"{n} kernels: {what}" for what, n in counts.most_common()), *lines))


def _is_listed(difference: FactDifference) -> bool:
    return difference.fact in (
        "access",
        "copy",
        "technique",
        "tensor_instruction",
        "local_stores",
        "local_loads",
        "registers",
    )


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    sys.stdout.write({"collect": collect, "compare": compare}[command](*map(Path, files)) + "\n")
