"""Facts of what can be measured and typed: ops, variants, costs, commands, options."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from characterisation import adapter
from characterisation.common import (
    command,
    outcome,
)
from characterisation.facts import plain, shape


def dimensions(spec: Any) -> list[str | int]:
    """Names of axes and whole numbers; groups along an axis as text."""
    return [a if isinstance(a, str | int) else str(a) for a in spec.axes]


def catalogue() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, op in adapter.catalogue().items():
        axes = [axis for axis in op.axis_names if axis != "o"]  # an offset is 0 where it is not stated
        sizes = [dict.fromkeys(axes, n) for n in (32, 257, 4096)]
        one: dict[str, Any] = {
            "axes": [[a.name, a.default, a.cpu_default] for a in op.axes],
            "dtypes": op.dtypes,
            "computes": dict(op.computes),
            "directions": op.directions,
            "baseline": op.baseline,
            "slab": op.slab,
            "presets": {p.name: dict(p.sizes) for p in op.presets},
            "inputs": [[t.name, dimensions(t), t.dtype, t.below, t.ids, t.data] for t in op.inputs],
            "outputs": [[t.name, dimensions(t), t.dtype] for t in op.outputs],
            "variants": [adapter.variant_facts(v) for v in op.variants],
        }
        refused: dict[str, str] = {}
        costs: dict[str, Any] = {}
        for dtype, direction in itertools.product(op.dtypes, op.directions):
            for compute in op.computes.get(dtype) or (None,):
                problems = [outcome(partial(op.problem, s, dtype, compute=compute, direction=direction)) for s in sizes]
                key = " ".join(filter(None, (dtype, compute, direction)))
                if isinstance(problems[0], dict):
                    refused[key] = str(problems[0])
                    continue
                variants = op.of(problems[1]).variants
                refused[key] = "".join("x" if v.refuses(problems[1]) else "." for v in variants)
                for problem in problems:
                    made = outcome(partial(op.cost_of, problem))
                    if isinstance(made, dict):
                        costs[problem.key] = made
                        continue
                    costs[problem.key] = [
                        made.work_flop,
                        made.read_bytes,
                        made.written_bytes,
                        op.tensor_bytes(problem),
                        op.needed_bytes(problem),
                    ]
        found[name] = plain(one) | {"refuses": refused, "costs": costs}
    return found


def commands() -> dict[str, Any]:
    """Every command with its options, and the exit code of its help."""

    def options(one: Any) -> list[Any]:
        return [
            [sorted(p.opts), sorted(p.secondary_opts), p.param_type_name, p.required, p.multiple or p.nargs != 1]
            for p in one.params
        ]

    def walk(one: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(path), {"options": options(one), "help": command(*path, "--help")[0]}
        for name, inner in sorted(getattr(one, "commands", {}).items()):
            yield from walk(inner, (*path, name))

    found = dict(walk(adapter.command_tree(), ()))
    listed = json.loads(command("ops", "--json", "--device", "cpu")[1])
    return found | {"no command": command()[0], "version": command("--version")[0], "ops --json": sorted(shape(listed))}
