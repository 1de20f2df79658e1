"""Run in a process of its own: bind cases on the GPU and call them. Standard input: [op, variant, sizes, dtype] each, as JSON.

Prints, for each, the kernels that were written into the caches, whose folders are the arguments: none, if all were there, and
null for a case whose sizes the variant refuses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from kernelviz.core.errors import BadField
from kernelviz.measure.session.inputs import allocate, fill
from kernelviz.ops import catalogue, refresh


def called(op_name: str, name: str, sizes: dict[str, int], dtype: str) -> None:
    op = catalogue()[op_name]
    problem = op.problem(sizes, dtype)
    variant = op.variant_named(name)
    inputs = allocate(op.inputs, problem, torch.device("cuda:0"))
    fill(op, inputs, problem, 0)
    launch = variant.bind(*inputs, **variant.keywords(problem))
    refresh(launch)
    launch()
    torch.cuda.synchronize()


def cubins() -> set[str]:
    return {str(path) for folder in sys.argv[1:] for path in Path(folder).rglob("*.cubin")}


if __name__ == "__main__":
    answer: list[list[str] | None] = []
    for case in json.loads(sys.stdin.read()):
        before = cubins()
        try:
            called(*case)
        except BadField:
            answer.append(None)
        else:
            answer.append(sorted(cubins() - before))
    sys.stdout.write(json.dumps(answer))
