"""The workload `transformer_layer`: the module is right, planted faults are found, and parts and rest add up on a processor."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from kernelviz.bench import Bench
from kernelviz.bench.workload_plan import WorkloadRequest
from kernelviz.core import Device
from kernelviz.core.reasons import ErrorTooLarge
from kernelviz.core.workload import Measured
from kernelviz.formats import workload_document
from kernelviz.hardware.discovery import discover
from kernelviz.models.parts import NUMBER_FORMATS, PHASES, LayerCall, layer_parts
from kernelviz.models.presets import PRESETS, ModelPreset
from kernelviz.store import Store
from kernelviz.workloads.transformer_layer import torch_inductor_groups as inductor
from kernelviz.workloads.transformer_layer import torch_reference as proof
from kernelviz.workloads.transformer_layer.torch_build import build
from kernelviz.workloads.transformer_layer.torch_graph_slices import in_order
from kernelviz.workloads.transformer_layer.torch_layer import Part
from kernelviz.workloads.transformer_layer.torch_library_calls import between_marks


def small(preset: ModelPreset) -> ModelPreset:
    """The model with few and short heads."""
    latent = preset.latent
    grouped = preset.kv_heads < preset.query_heads
    return msgspec.structs.replace(
        preset,
        hidden=128,
        intermediate=192,
        query_heads=4,
        kv_heads=2 if grouped else 4,
        head_dim=32 if latent is None else 48,
        latent=latent and msgspec.structs.replace(latent, query_rank=48, kv_rank=32, nope=32, rope=16, value=32),
    )


def errors(preset: ModelPreset, call: LayerCall, damage: str | None = None) -> float:
    """The error of a small layer; `damage`: a part that does nothing to what it should change."""
    with torch.no_grad():
        layer, x_TH = build(preset, call, "cpu", 0)
        reference = proof.reference_of(layer, x_TH)
        if damage is not None:
            layer.part(damage).function = damaged(layer.part(damage))
        return proof.error_of(layer, layer, x_TH, reference)


def damaged(part: Part):  # type: ignore[no-untyped-def]
    function = part.function
    if dict(part.named_buffers()).keys() & {"keys", "cache"}:
        # It passes the cache on as it is, without the new token.
        return lambda own, state: state.update(own.named_buffers())

    def wrong(own, state):  # type: ignore[no-untyped-def]
        before = dict(state)
        function(own, state)
        for name, tensor in state.items():
            if tensor is not before.get(name) and tensor.is_floating_point():
                state[name] = tensor * 1.25

    return wrong


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("dtype", NUMBER_FORMATS)
def test_each_layer_is_right(name: str, phase: str, dtype: str) -> None:
    preset = small(PRESETS[name])
    call = LayerCall(preset=name, phase=phase, batch=2, context=24, dtype=dtype)  # type: ignore[arg-type]
    units = errors(preset, call) / proof.UNIT_ROUNDING[dtype]
    assert units < proof.UNITS_ALLOWED / 2


@pytest.mark.parametrize("name", ["llama-3-8b", "deepseek-v3-dense", "gpt-2"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_part_that_errs_is_found(name: str, phase: str) -> None:
    """A quarter more of any tensor that a part makes, but for those that a norm takes back."""
    preset = small(PRESETS[name])
    call = LayerCall(preset=name, phase=phase, batch=2, context=24)  # type: ignore[arg-type]
    taken_back = {"latents"}
    for part in layer_parts(preset, call):
        if part.name not in taken_back and not part.name.endswith("_bias"):
            error = errors(preset, call, part.name)
            assert error > proof.UNITS_ALLOWED * proof.UNIT_ROUNDING["bf16"], part.name


def test_an_error_beyond_the_bound_is_a_wrong_result() -> None:
    call = LayerCall(preset="gpt-2", phase="prefill", batch=1, context=8)
    failure = proof.failure_of(1.0, call)
    assert failure is not None
    assert failure.stage == "wrong"
    assert isinstance(failure.reasons[0], ErrorTooLarge)
    assert proof.failure_of(0.001, call) is None
    assert proof.failure_of(float("inf"), call) is not None
    assert proof.relative_error(torch.tensor([[float("nan")]]), torch.ones(1, 1)) == float("inf")


def test_kernels_are_assigned_only_where_they_fit() -> None:
    groups = inductor.Groups((("qkv",), ("rope",), ("up",)), (False, True, False))
    assert inductor.assign(["gemm", "triton_1", "gemm"], groups).sizes == (1, 1, 1)
    for kernels in (
        ["gemm", "gemm"],
        ["gemm", "triton_1"],
        ["gemm", "triton_1", "gemm", "triton_2"],
        ["triton_1", "gemm"],
    ):
        with pytest.raises(inductor.NotAssignable):
            inductor.assign(kernels, groups)


def test_nodes_of_a_graph_are_ordered_by_their_edges_and_only_a_chain_is_taken() -> None:
    assert in_order([3, 1, 2], [(2, 3), (1, 2)]) == [1, 2, 3]
    assert in_order([1], []) == [1]
    for edges in ([(1, 2), (1, 3)], [(1, 2)], [(1, 2), (2, 1)], [(1, 3), (2, 3)]):
        with pytest.raises(inductor.NotAssignable):
            in_order([1, 2, 3], edges)


def without_modules(graph: torch.fx.Graph) -> None:
    """What torch 2.11 leaves of a product that it joined with an addition."""
    for node in graph.nodes:
        if node.target is torch.ops.aten.addmm.default:
            node.meta.pop("nn_module_stack", None)


@pytest.mark.parametrize("model", ["llama-3-8b", "gpt-2"])
def test_the_groups_of_a_compiled_layer_are_its_parts_in_the_order_of_the_calls(model: str) -> None:
    """A library call that also adds belongs to its projection, too; nothing of the layer is without a group, also where torch
    does not say which submodules a joined call is of."""
    preset = small(PRESETS[model])
    call = LayerCall(preset=model, phase="decode", batch=2, context=24)
    with torch.no_grad(), torch._inductor.config.patch(post_grad_custom_post_pass=without_modules):
        layer, x_TH = build(preset, call, "cpu", 0)
        reference = proof.reference_of(layer, x_TH)
        compiled, groups = inductor.compile_layer(layer, x_TH)
        assert proof.failure_of(proof.error_of(layer, compiled, x_TH, reference), call) is None
        calls: list[None] = []
        with between_marks(lambda: calls.append(None)):
            compiled(x_TH)
        compiled(x_TH)  # without marks again
    assert len(calls) == 2 * sum(groups.in_table)
    of_libraries = [parts for parts, generated in zip(groups.parts, groups.generated, strict=True) if not generated]
    gate = [] if model == "gpt-2" else [("gate",)]
    joined = ("output", *(["output_bias"] if model == "gpt-2" else ["attention_residual"]))
    down = ("down", *(["down_bias"] if model == "gpt-2" else ["feed_forward_residual"]))
    up = ("up", "up_bias") if model == "gpt-2" else ("up",)
    qkv = ("qkv", "qkv_bias") if model == "gpt-2" else ("qkv",)
    assert of_libraries == [qkv, ("attention",), joined, *gate, up, down]
    assert sum(groups.in_table) == len(of_libraries) - 1  # attention is not called through inductor's table
    assert {part for parts in groups.parts for part in parts} == set(layer.names)


def test_kernels_of_library_calls_in_a_row_are_told_apart_by_their_counts() -> None:
    """The kernels of the layer of Llama-3-8B on an H100 with torch 2.11: attention, and behind it the projection with the
    residual, for which cuBLAS first copies the residual."""
    parts = (("rope",), ("attention",), ("output", "attention_residual"), ("feed_forward_norm",))
    groups = inductor.Groups(parts, (True, False, False, True), in_table=(False, False, True, False))
    kernels = ["triton_poi", "memset", "cudnn", "memcpy", "memset", "nvjet_badd", "triton_red"]
    assert inductor.assign(kernels, groups, (3,)).sizes == (1, 2, 3, 1)
    assert inductor.assign(kernels, groups, (3,)).parts == parts
    assert inductor.assign(kernels, groups).parts[1] == ("attention", "output", "attention_residual")
    with pytest.raises(inductor.NotAssignable):
        inductor.assign(kernels, groups, (5,))


def test_parts_and_rest_add_up_in_a_process_of_its_own(tmp_path: Path) -> None:
    cpu: Device = next(d for d in discover() if d.kind == "cpu")
    bench = Bench(Store.open(tmp_path), (cpu,), lock_directory=tmp_path)
    try:
        request = WorkloadRequest(
            "transformer_layer",
            variants=("eager",),
            values={"model": "gpt-2", "phase": "decode", "batch": "1", "context": "8", "dtype": "bf16"},
            devices=("cpu",),
            budget_s=0.02,
        )
        run_id = bench.workloads.run(bench.workloads.plan(request))
        for _ in bench.workloads.follow(run_id):
            pass
        run = bench.workloads.load(run_id)
    finally:
        bench.close()
    (result,) = run.results
    assert result.failure is None, result.failure
    layer, total, rest = (result.values[name] for name in ("layer_s", "groups_s", "rest_s"))
    assert isinstance(layer, Measured)
    assert isinstance(total, Measured)
    assert isinstance(rest, Measured)
    assert rest.estimate == pytest.approx(layer.estimate - total.estimate)
    assert total.estimate == pytest.approx(sum(g.time.estimate for g in result.known_groups if g.time))
    call = LayerCall(preset="gpt-2", phase="decode", batch=1, context=8)
    assert [g.parts for g in result.known_groups] == [(p.name,) for p in layer_parts(PRESETS["gpt-2"], call)]
    assert workload_document.decode(workload_document.encode(run)).results == run.results
