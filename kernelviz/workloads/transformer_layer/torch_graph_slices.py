"""Slices of a captured CUDA graph: clones in which all but some nodes are destroyed, so that they run on their own.

CUDA runtime API reference, "Graph Management": a clone has nodes of its own, and destroying a node removes its edges. The nodes
that stay are neighbours in the order of capture, so that they still depend on each other. Their tensors are those of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernelviz.workloads.transformer_layer.torch_inductor_groups import NotAssignable


class GraphSlices:
    """Slices of the graph with this handle, whose nodes are kernels, copies and fills of one stream."""

    def __init__(self, handle: int, records: int) -> None:
        """Raises NotAssignable unless the graph has as many nodes as a replay of it has `records`."""
        from cuda.bindings import runtime

        self._runtime: Any = runtime
        self._graph = runtime.cudaGraph_t(handle)
        _, count = self._call("cudaGraphGetNodes", self._graph, 0)
        nodes, _ = self._call("cudaGraphGetNodes", self._graph, count)
        self._nodes = list(nodes[:count])
        if len(self._nodes) != records:
            raise NotAssignable(f"the graph has {len(self._nodes)} nodes, and {records} records came of its replay")
        self._clones: list[Any] = []

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
