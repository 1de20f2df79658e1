"""torch.compile of a layer, with the groups that inductor made: each kernel that it generated, and each call of a library.

Inductor's scheduler is found by a pass after fusion, and its nodes are read when it has compiled. The origins of a node name the
submodules whose ops it does, which are the parts of the layer. Products are also remembered by their weights before inductor
joins them with additions, because torch 2.11 gives the joined call no submodules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelviz.workloads.transformer_layer.torch_layer import Layer

GENERATED = "triton_"
"""Inductor's names of the kernels that it generates (torch/_inductor/codegen/triton.py)."""
TABLE = "extern_kernels."
"""Inductor's names of the library calls that generated code finds in one table (torch/_inductor/select_algorithm.py)."""

PROJECTIONS = {
    "qkv_bias": "qkv",
    "output_bias": "output",
    "up_bias": "up",
    "down_bias": "down",
    "attention_residual": "output",
    "feed_forward_residual": "down",
}
"""Inductor makes one library call (addmm) of a projection and what is added to it, its bias or the residual. Torch 2.13 gives it
the origin of the addition only; no library call adds alone."""


class NotAssignable(Exception):
    """The kernels of the compiled layer could not be assigned to inductor's groups."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a layer in the order of their launches. `parts`: of each group. `generated`: whether inductor generated its
    kernel; empty for the eager layer. `sizes`: how many kernels it launches, where that is known. `in_table`: whether it is a
    library call that generated code finds in inductor's table, so that its kernels can be counted."""

    parts: tuple[tuple[str, ...], ...]
    generated: tuple[bool, ...] = ()
    sizes: tuple[int, ...] = ()
    in_table: tuple[bool, ...] = ()


def compile_layer(layer: Layer, x_TH: Tensor) -> tuple[Callable[[Tensor], Tensor], Groups]:
    """The compiled layer, compiled now, and its groups. Caches of compiled graphs are not used, because a graph from a cache does
    not come through the scheduler."""
    from torch._inductor import config

    schedulers: list[Any] = []
    products: dict[str, tuple[str, ...]] = {}

    def remember(nodes: list[Any]) -> list[Any]:
        schedulers.extend(nodes[0].scheduler for _ in nodes[:1])
        return nodes

    passes = {
        "post_grad_custom_pre_pass": lambda graph: products.update(_parts_by_weight(graph, layer.names)),
        "_post_fusion_custom_pass": remember,
    }
    torch._dynamo.reset()
    with config.patch({**passes, "force_disable_caches": True}):
        compiled: Callable[[Tensor], Tensor] = torch.compile(layer, fullgraph=True, dynamic=False)
        compiled(x_TH)
    # Only now are the nodes in the order of their launches: inductor reorders them for peak memory after the pass.
    launching = [node for of in schedulers for node in of.nodes if not _launches_nothing(node)]
    return compiled, Groups(
        tuple(_parts_of(node, layer.names, products) for node in launching),
        tuple(not _is_library_call(node) for node in launching),
        in_table=tuple(_is_in_table(node) for node in launching),
    )


def _parts_by_weight(graph: Any, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By the name of the node that is a weight: the parts of its product and of the additions of its result."""
    aten = torch.ops.aten
    parts = {}
    for node in graph.nodes:
        if node.target is aten.mm.default:
            added = [user for user in node.users if user.target is aten.add.Tensor]
            parts[node.args[1].name] = tuple(part for one in (node, *added) for part in _modules_of(one, names))
    return parts


def _launches_nothing(node: Any) -> bool:
    from torch._inductor import ir, scheduler

    # A library call with several results is a node of its own; so is each of its results, which launches nothing.
    return isinstance(node, scheduler.NopKernelSchedulerNode) or isinstance(node.node, ir.MultiOutput)


def _is_library_call(node: Any) -> bool:
    return bool(node.is_extern())


def _is_in_table(node: Any) -> bool:
    return _is_library_call(node) and str(getattr(node.node, "python_kernel_name", "")).startswith(TABLE)


def _parts_of(node: Any, names: Sequence[str], products: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The parts whose ops a node does, in the order of the layer. `products`: the parts by weight."""
    collected = set()
    for single in node.get_nodes():
        for origin in _origins(single.node):
            known = _modules_of(origin, names)
            if not known and _is_library_call(node):
                known = [part for argument in origin.all_input_nodes for part in products.get(argument.name, ())]
            collected.update(known)
    if _is_library_call(node):
        collected |= {PROJECTIONS[name] for name in collected if name in PROJECTIONS}
    return tuple(name for name in names if name in collected)


def _modules_of(origin: Any, names: Sequence[str]) -> list[str]:
    """The parts among the submodules that a node of the graph is of."""
    paths = [str(path) for path, _ in origin.meta.get("nn_module_stack", {}).values()]
    return [last for path in paths if (last := path.rpartition(".")[2].strip("'[]")) in names]


def _origins(buffer: Any) -> Sequence[Any]:
    """The nodes of the graph that a buffer computes: of a library call, the call itself without the views of its arguments."""
    if buffer is None:
        return ()
    own = buffer.get_origin_node()
    if own is not None:
        return (own,)
    origins = tuple(buffer.get_origins())
    called = getattr(buffer, "op_overload", None)  # of a call with several results, which has no node of its own
    return tuple(origin for origin in origins if called is not None and origin.target is called) or origins


def assign(kernels: Sequence[str], groups: Groups, counts: Sequence[int] | None = None) -> Groups:
    """The groups with their numbers of kernels, by the names that the device stamped. A generated kernel is one record with
    inductor's name; what lies between two of them are the kernels of the library calls there. `counts`: how many kernels each
    call of inductor's table launches. Library calls in a row that cannot be told apart are one group. Errors: NotAssignable.

    >>> parts = (("qkv",), ("rope",), ("gate",), ("up",))
    >>> groups = Groups(parts, (False, True, False, False), in_table=(True, False, True, False))
    >>> assign(["gemm", "triton_poi_0", "gemm", "splitk", "gemm"], groups).parts
    (('qkv',), ('rope',), ('gate', 'up'))
    >>> assign(["gemm", "triton_poi_0", "gemm", "splitk", "gemm"], groups, counts=(1, 2)).sizes
    (1, 1, 2, 1)
    """
    counted = _counted(groups, counts)
    rows: list[tuple[tuple[str, ...], bool, int, bool]] = []
    at = number = 0
    while number < len(groups.parts):
        if groups.generated[number]:
            if at >= len(kernels) or not kernels[at].startswith(GENERATED):
                raise NotAssignable(f"kernel {at} should be one that inductor generated")
            rows.append((groups.parts[number], True, 1, False))
            at, number = at + 1, number + 1
            continue
        end, upto = number, at
        while end < len(groups.parts) and not groups.generated[end]:
            end += 1
        while upto < len(kernels) and not kernels[upto].startswith(GENERATED):
            upto += 1
        sizes = _split(upto - at, counted[number:end])
        if sizes is not None:
            rows += [
                (groups.parts[number + i], False, size, counted[number + i] is not None) for i, size in enumerate(sizes)
            ]
        else:
            several = dict.fromkeys(part for one in groups.parts[number:end] for part in one)
            rows.append((tuple(several), False, upto - at, False))
        at, number = upto, end
    if at != len(kernels):
        raise NotAssignable(f"{len(kernels) - at} kernels are of no group")
    parts, generated, of, in_table = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Groups(parts, generated, of, in_table)


def _counted(groups: Groups, counts: Sequence[int] | None) -> list[int | None]:
    """The number of kernels of each group whose kernels were counted; of none if there are other calls than groups."""
    tabled = groups.in_table or (False,) * len(groups.parts)
    if counts is None or len(counts) != sum(tabled):
        return [None] * len(tabled)
    remaining = iter(counts)
    return [next(remaining) if one else None for one in tabled]


def _split(kernels: int, counted: Sequence[int | None]) -> list[int] | None:
    """How many of so many kernels each library call in a row launches; None if they cannot be told apart.

    >>> _split(5, [None, 3]), _split(2, [None, None]), _split(3, [None, None])
    ([2, 3], [1, 1], None)
    """
    unknown = sum(one is None for one in counted)
    rest = kernels - sum(one or 0 for one in counted)
    if rest < unknown or (rest and not unknown):
        raise NotAssignable(f"{len(counted)} library calls launch {kernels} kernels")
    if unknown > 1 and rest != unknown:
        return None
    return [rest // unknown if one is None else one for one in counted]
