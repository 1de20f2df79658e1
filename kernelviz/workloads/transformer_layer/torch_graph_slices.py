"""Slices of a captured CUDA graph: clones in which all but some nodes are destroyed, so that they run on their own.

CUDA runtime API reference, "Graph Management": a clone has nodes of its own, and destroying a node removes its edges. The nodes
that stay are neighbours in the order of capture, so that they still depend on each other. Their tensors are those of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsInt, TypeVar

import torch

from kernelviz.workloads.transformer_layer.torch_inductor_groups import NotAssignable

Node = TypeVar("Node", bound=SupportsInt)


def in_order(nodes: Sequence[Node], edges: Sequence[tuple[int, int]]) -> list[Node]:
    """The nodes of a chain in the order in which they run; the driver promises no order of its list. Errors: NotAssignable if
    they are no chain.

    >>> in_order([7, 5, 6], [(5, 6), (6, 7)])
    [5, 6, 7]
    """
    following = dict(edges)
    by_handle = {int(node): node for node in nodes}
    ordered: list[Node] = []
    first = by_handle.keys() - set(following.values())
    handle = next(iter(first)) if len(first) == 1 and len(following) == len(edges) else None
    while handle is not None:
        ordered.append(by_handle[handle])
        handle = following.get(handle)
    if len(ordered) != len(nodes):
        raise NotAssignable(f"the graph has {len(nodes)} nodes and {len(edges)} edges, which are no chain")
    return ordered


class GraphSlices:
    """Slices of the graph with this handle, whose nodes are kernels, copies and fills of one stream."""

    def __init__(self, handle: int, records: int) -> None:
        """Raises NotAssignable unless the graph has as many nodes as a replay of it has `records`."""
        from cuda.bindings import runtime

        self._runtime: Any = runtime
        self._graph = runtime.cudaGraph_t(handle)
        _, count = self._call("cudaGraphGetNodes", self._graph, 0)
        nodes, _ = self._call("cudaGraphGetNodes", self._graph, count)
        if count != records:
            raise NotAssignable(f"the graph has {count} nodes, and {records} records came of its replay")
        self._nodes = in_order(list(nodes[:count]), self._edges())
        self._clones: list[Any] = []

    def _edges(self) -> list[tuple[int, int]]:
        """The handles of the two nodes of each dependency."""
        count = self._call("cudaGraphGetEdges", self._graph, 0)[-1]
        begins, ends, *_ = self._call("cudaGraphGetEdges", self._graph, count)
        return [(int(begin), int(end)) for begin, end in zip(begins[:count], ends[:count], strict=True)]

    def replay_of(self, *ranges: tuple[int, int]) -> Callable[[], None]:
        """A function that launches the nodes of these ranges, one range behind the other, into torch's current stream."""
        launches = [self._executable(begin, end) for begin, end in ranges]

        def replay() -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for executable in launches:
                self._call("cudaGraphLaunch", executable, stream)

        return replay

    def _executable(self, begin: int, end: int) -> Any:
        (clone,) = self._call("cudaGraphClone", self._graph)
        self._clones.append(clone)
        for node in [*self._nodes[:begin], *self._nodes[end:]]:
            (copied,) = self._call("cudaGraphNodeFindInClone", node, clone)
            self._call("cudaGraphDestroyNode", copied)
        return self._call("cudaGraphInstantiate", clone, 0)[0]

    def _call(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        error, *values = getattr(self._runtime, function)(*arguments)
        if error != self._runtime.cudaError_t.cudaSuccess:
            raise NotAssignable(f"{function} returned {error.name}")
        return tuple(values)
