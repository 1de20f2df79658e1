"""torch.compile is really torch.compile: one graph for each problem, also beyond dynamo's limits, and never a second one."""

import pytest
import torch

from kernelviz.core.reasons import Recompiled
from kernelviz.core.result import Failure
from kernelviz.measure.session.failures import failure
from kernelviz.ops.kernels.inductor import NotCompiled, compiled

pytestmark = pytest.mark.xdist_group("inductor")


LIMIT = 8
"""Dynamo's default `recompile_limit`. Not read from its settings: `compiled` raises them for the whole process."""


def doubled(x_N: torch.Tensor) -> torch.Tensor:
    return x_N * 2


def test_more_sizes_than_dynamos_limit_are_compiled_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo's limit of eight shapes a function would make the others run eagerly, without a word.

    Inductor is given each graph, but compiles only the last one: its limits are dynamo's, and g++ takes 0.6 s a graph.
    """
    from torch._inductor import compile_fx

    given: list[tuple[int, ...]] = []
    inductor = compile_fx.compile_fx

    def last_one(graph: torch.fx.GraphModule, examples: list[torch.Tensor], **settings: object) -> object:
        given.append(tuple(examples[0].shape))
        if len(given) < sizes:
            return graph.forward
        monkeypatch.undo()  # it calls itself
        return inductor(graph, examples, **settings)

    monkeypatch.setattr(compile_fx, "compile_fx", last_one)
    sizes = LIMIT + 2
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for n in range(1, sizes + 1):
        x_N = torch.randn(n)
        torch.testing.assert_close(compiled(doubled, x_N)(), x_N * 2)
    assert given == [(n,) for n in range(1, sizes + 1)]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] - before == sizes


def test_a_bound_call_is_not_compiled_again() -> None:
    launch = compiled(doubled, torch.randn(16))
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for _ in range(3):
        launch()
    with torch.enable_grad():  # a guard of dynamo's: the launch sets its own mode
        launch()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs


def test_a_problem_is_compiled_again_after_a_setting_of_torch_changed() -> None:
    """The precision of products, for example, which only a GPU has; threads are a guard of dynamo's, too."""
    x_N = torch.randn(16)
    compiled(doubled, x_N)
    threads = torch.get_num_threads()
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    torch.set_num_threads(threads + 1)
    try:
        torch.testing.assert_close(compiled(doubled, x_N)(), x_N * 2)
    finally:
        torch.set_num_threads(threads)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs + 1


def test_what_would_be_compiled_inside_a_timed_region_is_an_error() -> None:
    x_N = torch.randn(16)
    launch = compiled(doubled, x_N)
    x_N.resize_(17)
    with pytest.raises(Exception, match="Recompiled") as caught:
        launch()
    assert failure(caught.value) == Failure(stage="wrong", reasons=(Recompiled(again=True),))
    names = {type(e).__name__ for e in (caught.value, caught.value.__cause__, caught.value.__context__) if e}
    assert names & {NotCompiled.__name__, "BackendCompilerFailed"}


def test_a_graph_break_is_an_error() -> None:
    def breaks(x_N: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x_N + 1

    with pytest.raises(Exception, match="graph_break"):
        compiled(breaks, torch.randn(4))
