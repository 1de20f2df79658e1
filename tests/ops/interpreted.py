"""Run in a process of its own with TRITON_INTERPRET=1: every Triton variant, interpreted, against the float64 reference.

Prints one JSON line a case: {"case", "passed", "worst_of_bound", "message"}. An interpreted kernel cannot be compiled in
the same process, and bf16 is left out: its arithmetic and tl.dot return garbage in the interpreter without an error.
"""

from __future__ import annotations

import json
import sys

from cases import problems, variants
from checking import checked

DTYPES = ("fp32", "fp16")


def main() -> None:
    for op, variant in variants("triton"):
        for problem in problems(op, variant, DTYPES):
            line: dict[str, object] = {"case": f"{variant.name} | {problem.key}"}
            try:
                accuracy = checked(op, variant, problem)
                line |= {
                    "passed": accuracy.passed,
                    "worst_of_bound": accuracy.worst_of_bound,
                    "message": accuracy.message,
                }
            except Exception as error:  # one kernel that does not run must not hide the others
                line |= {"passed": False, "worst_of_bound": None, "message": f"{type(error).__name__}: {error}"[:2000]}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
