"""What is asked of the process that compiles, and what it answers. Imports no torch."""

import msgspec

from kernelviz.core.problem import Direction, Problem
from kernelviz.core.run import Device


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to compile: these variants of an op for these problems, all in one direction, on such a GPU."""

    op: str
    variants: tuple[str, ...]
    problems: tuple[Problem, ...]
    direction: Direction
    device: Device


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The plug-in's text, how many kernels it holds, the compiler's name and version, and the cases that do not compile, each
    with the error."""

    text: str
    kernels: int
    compiler: str
    failures: dict[str, str]
