"""Run in a process of its own with TRITON_INTERPRET=1, and names of ops: their Triton variants, interpreted, against the float64
reference.

Prints one JSON line a case: {"case", "passed", "worst_of_bound", "message"}, where `passed` is null for sizes that the variant
refuses. An interpreted kernel cannot be compiled in
the same process, and bf16 is left out: its arithmetic and tl.dot return garbage in the interpreter without an error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from cases import compiled_by, interpreted_problems
from checking import checked, reasons_of

from kernelviz.core.errors import BadField


def main(names: Sequence[str]) -> None:
    for op, variant in compiled_by("triton"):
        if op.name not in names:
            continue
        for problem in interpreted_problems(op, variant):
            line: dict[str, object] = {"case": f"{variant.name} | {problem.key}"}
            try:
                accuracy = checked(op, variant, problem)
                line |= {
                    "passed": accuracy.passed,
                    "worst_of_bound": accuracy.worst_of_bound,
                    "message": reasons_of(accuracy),
                }
            except BadField as error:
                line |= {"passed": None, "worst_of_bound": None, "message": str(error)}
            except Exception as error:  # one kernel that does not run must not hide the others
                line |= {"passed": False, "worst_of_bound": None, "message": f"{type(error).__name__}: {error}"[:2000]}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
