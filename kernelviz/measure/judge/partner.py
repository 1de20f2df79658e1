"""`python -m kernelviz.measure.judge.partner DEVICE SOCKET N`: an honest worker, with which the judge times what is not the call.

The judge starts it before there is a worker of somebody else, and ends it before there is one.
"""

import sys

import torch

from kernelviz.core import Problem
from kernelviz.measure.judge.trials import JudgeLink
from kernelviz.ops import op_named


def problem_of(n: int) -> Problem:
    """The case of the partner: the sum of two vectors of n elements, in fp32."""
    return Problem(op="add", sizes={"n": n}, dtype="fp32")


def serve(device_id: str, descriptor: int, n: int) -> None:
    """Make the calls that the judge asks for. Raises EOFError where the judge has gone, ShareError."""
    device, problem = torch.device(device_id), problem_of(n)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    link = JudgeLink(descriptor)
    memory = link.memory(op_named(problem.op), problem, device)
    link.make_calls(lambda: torch.add(*memory.inputs), memory, lambda number: None, lambda: False)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
