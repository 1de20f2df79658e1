"""torch.compile of a layer, with the groups that inductor made: each kernel that it generated, and each call of a library.

Inductor's scheduler is found by a pass after fusion, and its nodes are read when it has compiled. The origins of a node name the
submodules whose ops it does, which are the parts of the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelviz.workloads.transformer_layer.torch_layer import Layer

GENERATED = "triton_"
"""Inductor's names of the kernels that it generates (torch/_inductor/codegen/triton.py)."""

PROJECTIONS = {
    "qkv_bias": "qkv",
    "output_bias": "output",
    "up_bias": "up",
    "down_bias": "down",
    "attention_residual": "output",
    "feed_forward_residual": "down",
}
"""Inductor makes one library call (addmm) of a projection and what is added to it, its bias or the residual. It has the origin of
the addition only; no library call adds alone."""


class NotAssignable(Exception):
    """The kernels of the compiled layer could not be assigned to inductor's groups."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a layer in the order of their launches. `parts`: of each group. `generated`: whether inductor generated its
    kernel; empty for the eager layer. `sizes`: how many kernels it launches, where that is known."""

    parts: tuple[tuple[str, ...], ...]
    generated: tuple[bool, ...] = ()
    sizes: tuple[int, ...] = ()


def compile_layer(layer: Layer, x_TH: Tensor) -> tuple[Callable[[Tensor], Tensor], Groups]:
    """The compiled layer, compiled now, and its groups. Caches of compiled graphs are not used, because a graph from a cache does
    not come through the scheduler."""
    from torch._inductor import config

    schedulers: list[Any] = []

    def remember(nodes: list[Any]) -> list[Any]:
        schedulers.extend(nodes[0].scheduler for _ in nodes[:1])
        return nodes

    torch._dynamo.reset()
    with config.patch({"_post_fusion_custom_pass": remember, "force_disable_caches": True}):
        compiled: Callable[[Tensor], Tensor] = torch.compile(layer, fullgraph=True, dynamic=False)
        compiled(x_TH)
    # Only now are the nodes in the order of their launches: inductor reorders them for peak memory after the pass.
    launching = [node for of in schedulers for node in of.nodes if not _launches_nothing(node)]
    return compiled, Groups(
        tuple(_parts_of(node, layer.names) for node in launching),
        tuple(not _is_library_call(node) for node in launching),
    )


def _launches_nothing(node: Any) -> bool:
    from torch._inductor import ir, scheduler

    # A library call with several results is a node of its own; so is each of its results, which launches nothing.
    return isinstance(node, scheduler.NopKernelSchedulerNode) or isinstance(node.node, ir.MultiOutput)


def _is_library_call(node: Any) -> bool:
    return bool(node.is_extern())


def _parts_of(node: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The parts whose ops a node does, in the order of the layer."""
    collected = set()
    for single in node.get_nodes():
        for origin in _origins(single.node):
            for path, _ in origin.meta.get("nn_module_stack", {}).values():
                last = str(path).rpartition(".")[2].strip("'[]")
                if last in names:
                    collected.add(last)
    if _is_library_call(node):
        collected |= {PROJECTIONS[name] for name in collected if name in PROJECTIONS}
    return tuple(name for name in names if name in collected)


def _origins(buffer: Any) -> Sequence[Any]:
    """The nodes of the graph that a buffer computes: of a library call, the call itself without the views of its arguments."""
    if buffer is None:
        return ()
    own = buffer.get_origin_node()
    return (own,) if own is not None else tuple(buffer.get_origins())


def assign(kernels: Sequence[str], groups: Groups) -> Groups:
    """The groups with their numbers of kernels, by the names that the device stamped. A generated kernel is one record with
    inductor's name; what lies between two of them are the kernels of the library calls there. Several library calls in a row
    are one group each if they launch one kernel each, else one group together. Errors: NotAssignable.

    >>> groups = Groups((("qkv",), ("rope",), ("gate",), ("up",)), (False, True, False, False))
    >>> assign(["gemm", "triton_poi_0", "gemm", "splitk", "gemm"], groups)
    Groups(parts=(('qkv',), ('rope',), ('gate', 'up')), generated=(False, True, False), sizes=(1, 1, 3))
    """
    parts: list[tuple[str, ...]] = []
    generated: list[bool] = []
    sizes: list[int] = []
    at = number = 0
    while number < len(groups.parts):
        end = number
        if groups.generated[number]:
            if at >= len(kernels) or not kernels[at].startswith(GENERATED):
                raise NotAssignable(f"kernel {at} should be one that inductor generated")
            parts.append(groups.parts[number])
            generated.append(True)
            sizes.append(1)
            at, number = at + 1, number + 1
            continue
        while end < len(groups.parts) and not groups.generated[end]:
            end += 1
        upto = at
        while upto < len(kernels) and not kernels[upto].startswith(GENERATED):
            upto += 1
        several = groups.parts[number:end]
        if upto - at < len(several):
            raise NotAssignable(f"{len(several)} library calls launch {upto - at} kernels")
        if upto - at == len(several):
            parts += several
            generated += [False] * len(several)
            sizes += [1] * len(several)
        else:
            parts.append(tuple(dict.fromkeys(part for one in several for part in one)))
            generated.append(False)
            sizes.append(upto - at)
        at, number = upto, end
    if at != len(kernels):
        raise NotAssignable(f"{len(kernels) - at} kernels are of no group")
    return Groups(tuple(parts), tuple(generated), tuple(sizes))
