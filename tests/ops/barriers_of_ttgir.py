"""Executes what the TTGIR of a warp-specialised kernel says about mbarriers, TMA loads and wgmma: integers, without the data.

The partitions run as coroutines, in an order drawn by a seed. Asserted: that all of them end, that a load never writes a slot of
the ring while a wgmma may read it, and that no barrier gets more arrivals than it expects. Semantics of mbarriers: PTX ISA,
"Parallel Synchronization and Communication Instructions: mbarrier". A phase completes only when its bytes are exactly those
that were expected.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LOCATION = re.compile(r' loc\((?:"[^"]*"\([^()]*\)|[^()]*)\)')
NAME = r"%[\w]+(?:#\d+)?"
COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sgt": operator.gt,
    "sle": operator.le,
    "sge": operator.ge,
}
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "andi": operator.and_, "xori": operator.xor, "minsi": min,
    "divsi": lambda a, b: int(a / b), "remsi": lambda a, b: a - b * int(a / b),
}  # fmt: skip
NO_VALUE = (
    "arith.truncf",
    "tt.reshape",
    "tt.trans",
    "tt.split",
    "ttg.local_store",
    "ttng.fence_async_shared",
    "tt.return",
)
Box = tuple[str, int, int]
"""Which matrix, and the row and the column at which its block begins."""
Values = dict[str, Any]


@dataclass
class Barrier:
    """An mbarrier: of its current phase, the arrivals and bytes that are still to come."""

    count: int = 0
    arrivals: int = 0
    bytes: int = 0
    phases: int = 0

    def changed(self) -> None:
        assert self.arrivals >= 0, "more arrivals than the barrier expects"
        if self.arrivals == 0 and self.bytes == 0:
            self.phases += 1
            self.arrivals = self.count


@dataclass
class Machine:
    """What the partitions share; `products`: of each partition, the pairs of boxes that its wgmmas have read, in order."""

    program: int
    programs: int
    barriers: dict[tuple[int, int], Barrier] = field(default_factory=dict)
    slots: dict[tuple[int, int], Box] = field(default_factory=dict)
    products: dict[str, list[tuple[Box, Box]]] = field(default_factory=dict)
    in_flight: dict[str, list[tuple[tuple[int, int], ...]]] = field(default_factory=dict)


def split_names(text: str) -> list[str]:
    return re.findall(NAME, text)


def block(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines of the region that the line `at` opens, and the position after the line that closes it."""
    depth, end = 1, at + 1
    while depth:
        line = lines[end]
        depth += line.rstrip().endswith("{") - line.lstrip().startswith("}")
        end += 1
    return lines[at + 1 : end - 1], end


def bytes_of_box(line: str) -> int:
    match = re.search(r"tensordesc<tensor<(\d+)x(\d+)x[bf]+16", line)
    assert match, line
    return int(match[1]) * int(match[2]) * 2


def execute(machine: Machine, name: str, lines: list[str], values: Values) -> Generator[None, None, list[Any]]:
    """Runs the lines; gives what they yield at their end. It stops where other partitions may run in between."""
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        result, _, operation = line.rpartition(" = ") if re.match(r"%[\w:, %]+ = ", line) else ("", "", line)
        if result:
            result, operation = re.split(r" = ", line, maxsplit=1)
        kind = operation.split(" ", 1)[0].split("(")[0]
        used = [values.get(n) for n in split_names(operation)]
        if kind == "scf.for":
            inner, at = block(lines, at - 1)
            bounds = re.match(rf"scf\.for (%\w+) = ({NAME}) to ({NAME}) step ({NAME}) iter_args\((.*?)\) ->", operation)
            assert bounds, line
            carried = re.findall(rf"(%\w+) = ({NAME})", bounds[5])
            current = [values.get(initial) for _, initial in carried]
            for i in range(values[bounds[2]], values[bounds[3]], values[bounds[4]]):
                inside = values | {bounds[1]: i} | {n: v for (n, _), v in zip(carried, current, strict=True)}
                current = yield from execute(machine, name, inner, inside)
            values |= {f"{result.split(':')[0]}#{i}": v for i, v in enumerate(current)}
        elif kind == "scf.yield":
            return [values.get(n) for n in split_names(operation.split(" : ")[0])]
        elif kind == "arith.constant":
            text = operation.split()[1]
            values[result] = {"true": 1, "false": 0}.get(text, int(text) if re.fullmatch(r"-?\d+", text) else None)
        elif kind == "arith.cmpi":
            values[result] = int(COMPARE[operation.split()[1].strip(",")](*used))
        elif kind == "arith.select":
            values[result] = used[1] if used[0] else used[2]
        elif kind.removeprefix("arith.") in ARITHMETIC:
            values[result] = ARITHMETIC[kind.removeprefix("arith.")](*used)
        elif kind == "tt.get_program_id":
            values[result] = machine.program
        elif kind == "tt.get_num_programs":
            values[result] = machine.programs
        elif kind == "ttg.local_alloc":
            values[result] = len(values)  # stands for the address
        elif kind == "ttg.memdesc_index":
            length = re.search(r"memdesc<(\d+)x", operation)
            assert length, line
            assert 0 <= used[1] < int(length[1]), f"{line}: index {used[1]}"
            values[result] = (used[0], used[1])
        elif kind == "ttg.memdesc_subslice":
            values[result] = used[0]
        elif kind == "ttng.init_barrier":
            count = int(re.split(r"[, ]+", operation)[2])
            machine.barriers[used[0]] = Barrier(count, count)
        elif kind == "ttng.wait_barrier":
            while used[2] and machine.barriers[used[0]].phases % 2 == used[1]:
                yield
        elif kind == "ttng.arrive_barrier":
            yield
            if used[1]:
                machine.barriers[used[0]].arrivals -= int(re.split(r"[, ]+", operation)[2])
                machine.barriers[used[0]].changed()
        elif kind == "ttng.barrier_expect":
            machine.barriers[used[0]].bytes += int(re.split(r"[, ]+", operation)[2])
            machine.barriers[used[0]].arrivals -= 1
            machine.barriers[used[0]].changed()
        elif kind == "ttng.async_tma_copy_global_to_local":
            matrix, row, column, slot, barrier, _ = used
            yield
            assert not any(slot in slots for queue in machine.in_flight.values() for slots in queue), (
                f"{slot} is in use"
            )
            machine.slots[slot] = (matrix, row, column)
            machine.barriers[barrier].bytes -= bytes_of_box(line)
            machine.barriers[barrier].changed()
        elif kind == "ttng.warp_group_dot":
            machine.products.setdefault(name, []).append((machine.slots[used[0]], machine.slots[used[1]]))
            machine.in_flight.setdefault(name, []).append((used[0], used[1]))
            yield
        elif kind == "ttng.warp_group_dot_wait":
            pending = int(re.search(r"pendings = (\d+)", operation)[1])  # type: ignore[index]
            queue = machine.in_flight.setdefault(name, [])
            del queue[: len(queue) - pending]
            yield
        else:
            assert kind in NO_VALUE or kind.startswith("ttng.async_tma_"), line
    return []


def partitions(lines: list[str], outer: Values) -> Iterator[tuple[str, list[str], Values]]:
    """Name, lines and values of each partition of the kernel's `ttg.warp_specialize`."""
    start = next(i for i, line in enumerate(lines) if "ttg.warp_specialize(" in line)
    given = [outer.get(n) for n in split_names(lines[start].split(" attributes ")[0])]
    for i, line in enumerate(lines):
        if line.strip() == "default {":
            yield "default", block(lines, i)[0], dict(outer)
        if match := re.match(r"\s*(partition\d+)\((.*)\) num_warps\(\d+\) \{$", line):
            names = re.findall(r"(%\w+): ", match[2])
            yield match[1], block(lines, i)[0], dict(zip(names, given, strict=True))


def run_program(ttgir: str, sizes: Mapping[str, int], program: int, programs: int, seed: int) -> Machine:
    """Runs one program of the kernel; AssertionError where its partitions wait for each other for ever."""
    lines = [LOCATION.sub("", line) for line in ttgir.splitlines()]
    start = next(i for i, line in enumerate(lines) if "tt.func public" in line)
    first = next(i for i, line in enumerate(lines) if "ttg.warp_specialize(" in line)
    values: Values = {f"%{n}": v for n, v in sizes.items()} | {f"%{n}": n for n in "abc"}
    machine = Machine(program, programs)
    assert list(execute(machine, "kernel", lines[start + 1 : first], values)) == []
    work = [
        execute(machine, name, [x for x in body if "ttg.warp_" not in x], own)
        for name, body, own in partitions(lines, values)
    ]
    assert len(work) == 3
    order, idle = random.Random(seed), 0
    while work:
        before = repr(machine)
        chosen = order.choice(work)
        try:
            next(chosen)
            idle = idle + 1 if repr(machine) == before else 0
        except StopIteration:
            work.remove(chosen)
            idle = 0
        assert idle < 200, f"{len(work)} partitions wait for each other: {machine.barriers}"
    return machine
