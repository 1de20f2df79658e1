"""The backward pass of a torch function as a launch: only `autograd.grad` is timed, not the forward pass that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kernelviz.ops.catalog.variant import Staged

if TYPE_CHECKING:
    from torch import Tensor


def backward_of(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor],
    wanted: Sequence[int],
) -> Staged:
    """A launch that computes, from the gradients `grads` of the outputs, those of the inputs at the positions `wanted`.

    On a GPU there are two forward passes. One runs eagerly, for eager calls. The other is captured as a graph of its own on the
    stream on which torch captures, because autograd runs each step on the stream of its forward step; a captured backward pass
    reads what a replay of that graph wrote.
    Errors: whatever the function and autograd raise.
    """
    passes = _Passes(function, inputs, grads, wanted)
    return Staged(passes.forward, passes.backward)


_Pass: TypeAlias = "tuple[tuple[Tensor, ...], list[Tensor]]"
"""Outputs of a forward pass, and the leaves whose gradients are wanted."""


class _Passes:
    def __init__(
        self,
        function: Callable[..., Tensor | tuple[Tensor, ...]],
        inputs: Sequence[Tensor],
        grads: Sequence[Tensor],
        wanted: Sequence[int],
    ) -> None:
        import torch

        self._function, self._inputs = function, tuple(inputs)
        self._grads, self._wanted = tuple(grads), tuple(wanted)
        self._eager = self._pass()
        self._graph = None
        self._captured: _Pass | None = None
        if self._inputs[0].device.type == "cuda":
            # The first call of either pass may compile and allocate, which a capture cannot.
            self.backward()
            torch.cuda.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._captured = self._pass()

    def _pass(self) -> _Pass:
        import torch

        # Each pass has its own leaves: autograd synchronises with the stream on which a leaf was first used, and a capture must
        # not wait for a stream that is not captured. .data has its own version counter: autograd refuses refilled inputs.
        leaves = tuple(t.data.requires_grad_(i in self._wanted) for i, t in enumerate(self._inputs))
        with torch.enable_grad():
            result = self._function(*leaves)
        outputs = (result,) if isinstance(result, torch.Tensor) else tuple(result)
        return outputs, [leaves[i] for i in self._wanted]

    def forward(self) -> None:
        self._eager = self._pass()
        if self._graph is not None:
            self._graph.replay()

    def backward(self) -> tuple[Tensor, ...]:
        import torch

        captured = self._captured if self._captured and torch.cuda.is_current_stream_capturing() else None
        outputs, leaves = captured or self._eager
        return torch.autograd.grad(outputs, leaves, self._grads, retain_graph=True)
