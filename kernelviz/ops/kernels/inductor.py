"""torch.compile as a variant: compiled for exactly the problem at hand, or an error."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kernelviz.core.reasons import Recompiled, Refused
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.autograd import backward_of

if TYPE_CHECKING:
    from torch import Tensor


class NotCompiled(Refused):
    """torch.compile ran the function without compiling it for these shapes."""


def compiled(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> Launch:
    """A launch of `function` compiled for exactly these inputs; the first call, which compiles, has finished when it returns.

    With `dynamic=False` torch silently falls back to eager from the ninth size on. So the limit is raised, the function is
    copied for each problem, and exactly one graph must have been compiled. The same function on other tensors of the same
    shapes, strides and dtypes reuses the compiled graph. No mode that captures CUDA graphs itself is used.
    Errors: NotCompiled, and whatever the compiler raises.
    """
    import torch
    from torch._dynamo.exc import BackendCompilerFailed

    signature = (function, tuple((tuple(t.shape), t.stride(), t.dtype, str(t.device)) for t in inputs))
    run = _runs.pop(signature, None)
    with torch.no_grad():
        if run is not None:
            try:
                run(*inputs)
            except (NotCompiled, BackendCompilerFailed) as error:
                # A setting of torch that the graph depends on, such as the precision of products, is another one now.
                if not isinstance(getattr(error, "inner_exception", error), NotCompiled):
                    raise
                run = None
        if run is None:
            run = _compiled(function, inputs)
    # A method or closure may behave differently next time; a module's function does not, so its graph is cached.
    if function.__closure__ is None:
        _runs[signature] = run
        while len(_runs) > _MOST_RUNS:
            del _runs[next(iter(_runs))]
    compiled_run = run

    def launch() -> Tensor | tuple[Tensor, ...]:
        with torch.no_grad():
            result: Tensor | tuple[Tensor, ...] = compiled_run(*inputs)
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

    # Donated buffers, which the backward pass may overwrite, would be lost for a second backward pass over the same forward pass.
    with config.patch(donated_buffer=False), torch.enable_grad():
        leaves = tuple(t.data.requires_grad_(i in wanted) for i, t in enumerate(inputs))
        run = _compiled(function, leaves)
        return backward_of(run, inputs, grads, wanted)


_MOST_RUNS = 64
_runs: dict[tuple[Any, ...], Callable[..., Any]] = {}


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
