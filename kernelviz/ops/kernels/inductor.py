"""torch.compile as a variant: really compiled for every problem, or an error."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kernelviz.core.reasons import Recompiled, Refused
from kernelviz.ops.catalog.op import Launch, Staged
from kernelviz.ops.kernels.autograd import backward_of

if TYPE_CHECKING:
    from torch import Tensor


class NotCompiled(Refused):
    """torch.compile ran the function without compiling it for these shapes."""


def compiled(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Launch:
    """A launch of `function` compiled for exactly these inputs; the first call, which compiles, is over when it returns.

    With `dynamic=False` torch falls back to eager silently from the ninth size on; so the limit is raised, the function is
    a new one for each problem, and exactly one graph must have been compiled. The same function on other tensors of the
    same shapes, strides and dtypes takes the graph that is there. No mode that captures CUDA graphs itself.
    Errors: NotCompiled, and whatever the compiler raises.
    """
    import torch

    signature = (function, tuple((tuple(t.shape), t.stride(), t.dtype, str(t.device)) for t in inputs))
    run = _kept.pop(signature, None)
    with torch.no_grad():
        if run is not None:
            try:
                run(*inputs)
            except NotCompiled:
                run = None
        if run is None:
            run = _compiled(function, inputs)
    # Methods and closures may mean something else next time; a module's function never does.
    if function.__closure__ is None:
        _kept[signature] = run
        while len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    taken = run

    def launch() -> Tensor | tuple[Tensor, ...]:
        with torch.no_grad():
            result: Tensor | tuple[Tensor, ...] = taken(*inputs)
        return result

    return launch


def compiled_backward(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor],
    wanted: Sequence[int],
) -> Staged:
    """As `kernelviz.ops.kernels.autograd.backward_of`, of the compiled function: inductor makes the kernels of both passes.

    Errors: NotCompiled, and whatever the compiler raises.
    """
    import torch
    from torch._functorch import config

    # Buffers that the backward pass may overwrite are gone for a second backward pass over the same forward pass.
    with config.patch(donated_buffer=False), torch.enable_grad():
        leaves = tuple(t.data.requires_grad_(i in wanted) for i, t in enumerate(inputs))
        run = _compiled(function, leaves)
        return backward_of(run, inputs, grads, wanted)


_MOST_KEPT = 64
_kept: dict[tuple[Any, ...], Callable[..., Any]] = {}


def _compiled(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Callable[..., Any]:
    import torch
    from torch._dynamo import config
    from torch._inductor.compile_fx import compile_fx

    for limit in ("recompile_limit", "accumulated_recompile_limit", "cache_size_limit", "accumulated_cache_size_limit"):
        if hasattr(config, limit):
            setattr(config, limit, 2**20)
    graphs = 0

    def counting(graph: Any, examples: Any) -> Any:
        nonlocal graphs
        graphs += 1
        if graphs > 1:
            raise NotCompiled(Recompiled(again=True))
        return compile_fx(graph, examples, config_patches={"triton.cudagraphs": False})

    run: Callable[..., Any] = torch.compile(_copy(function), backend=counting, fullgraph=True, dynamic=False)
    run(*inputs)
    if graphs != 1:
        raise NotCompiled(Recompiled(graphs=graphs))
    return run


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a code object of its own: dynamo keeps compiled graphs and their limits by code object."""
    code = function.__code__.replace()
    copied = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied
