"""Run in a process of its own with TRITON_INTERPRET=1, and names of ops: their Triton variants, interpreted, against the float64
reference.

Prints one JSON line a case: {"case", "passed", "worst_of_bound", "raised", "message"}, where `passed` is null for sizes that the
variant refuses, and "explained" for what is published wrong: whether its outputs are those of the mistake that its caption
names. An interpreted kernel cannot be compiled in
the same process, and bf16 is left out: its arithmetic and tl.dot return garbage in the interpreter without an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import torch
from cases import compiled_by, interpreted_problems, wrong_at
from checking import bind, checked, inputs_of, judged, reasons_of, reference_of

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.core.result import Accuracy
from kernelviz.measure.gate.check import still_poisoned
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.measure.timing.host import poison
from kernelviz.ops import Op, Variant


def last_block_of_columns(inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> bool:
    """Each sum is that of the last 128 columns, or of as many as are left (the interpreter runs blocks in order)."""
    (x_MN,) = inputs
    return torch.allclose(output, x_MN[:, (x_MN.shape[1] - 1) // 128 * 128 :].sum(1), atol=1e-4)


def whole_tiles_only(inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> bool:
    """What is written is right, and nothing is written of the columns after the last whole tile of 32."""
    (x_MN,) = inputs
    whole = x_MN.shape[1] // 32 * 32
    return torch.equal(output[:whole], x_MN[:, :whole].t()) and bool(still_poisoned(output[whole:]).all())


MISTAKES = {
    ("row_sum", "triton_published"): last_block_of_columns,
    ("transpose", "triton_published"): whole_tiles_only,
}


def outputs_of(variant: Variant, problem: Problem, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The outputs of a call whose memory was poisoned before, because new memory may hold the right result of another call."""
    launch = bind(variant, problem, inputs)
    for output in as_tuple(launch()):
        poison(output)
    return as_tuple(launch())


def tried(op: Op, variant: Variant, problem: Problem) -> tuple[Accuracy, bool | None]:
    """What the gate says, and whether the outputs are those of the mistake that is known; None if it is right, or none is
    known."""
    mistake = MISTAKES.get((op.name, variant.name))
    if mistake is None:
        return checked(op, variant, problem), None
    inputs = inputs_of(op, problem)
    reference, outputs = reference_of(op, problem, inputs), outputs_of(variant, problem, inputs)
    explained = mistake(inputs, outputs[0]) if wrong_at(op, variant, problem.sizes) else None
    return judged(reference, outputs), explained


def main(names: Sequence[str]) -> None:
    for op, variant in compiled_by("triton"):
        if op.name not in names:
            continue
        for problem in interpreted_problems(op, variant):
            line: dict[str, object] = {"case": f"{variant.name} | {problem.key}", "raised": False}
            try:
                accuracy, explained = tried(op, variant, problem)
                line |= {
                    "passed": accuracy.passed,
                    "worst_of_bound": accuracy.worst_of_bound,
                    "message": reasons_of(accuracy),
                    "explained": explained,
                }
            except BadField as error:
                line |= {"passed": None, "worst_of_bound": None, "message": str(error)}
            except Exception as error:  # one kernel that does not run must not hide the others
                message = f"{type(error).__name__}: {error}"[:2000]
                line |= {"passed": False, "worst_of_bound": None, "raised": True, "message": message}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
