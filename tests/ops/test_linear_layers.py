"""Linear layers with an activation: the bound admits single steps and no missing bias; the fused kernel spills nothing."""

from __future__ import annotations

import pytest
import torch

from kernelviz.machine_code.facts import facts_of
from kernelviz.ops import Op
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.matmul.linear_op import LINEAR_OPS
from kernelviz.ops.matmul.variants_wgmma import HILBERT
from kernelviz.ops.matmul.wgmma import SOURCE, Function


@pytest.mark.parametrize("op", LINEAR_OPS, ids=lambda op: op.name)
def test_a_layer_in_single_steps_is_within_the_bound_and_a_layer_without_its_bias_is_not(op: Op) -> None:
    problem = op.problem({"m": 33, "n": 65, "k": 129}, "bf16")
    torch.manual_seed(0)
    inputs = [torch.randn(shape, dtype=torch.bfloat16) for shape in ((33, 129), (65, 129), (65,))]
    exact = [t.double() for t in inputs]
    outputs = op.reference(*exact)
    (allowed,) = op.bound(problem, exact, outputs)
    for bias, within in ((inputs[2], True), (torch.zeros_like(inputs[2]), False)):
        result = op.variant_named("torch_eager").bind(inputs[0], inputs[1], bias)()
        assert isinstance(result, torch.Tensor)
        assert bool(((result.double() - outputs[0]).abs() <= allowed).all()) == within


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("function", ["relu", "gelu", "silu"])
def test_the_epilogue_of_the_wgmma_kernel_spills_nothing(function: Function) -> None:
    pytest.importorskip("triton")  # its wheel has nvdisasm
    defines = HILBERT.defines("__nv_bfloat16", function=function, b_k_contiguous=True)
    arch = nvrtc.architecture("sm_90", specific=True)
    (kernel,) = facts_of(nvrtc.compile_cubin(SOURCE, arch, defines, "matmul_wgmma"))
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
    assert {role.registers for role in kernel.roles} == {24, 240}
