"""The compositions that a fused linear layer and a product of a transposed matrix replace."""

from __future__ import annotations

from kernelviz.core.fusion import Step, StepKind
from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.fusion import Composition, Fusion, Steps, WorkSweep, elementwise_step
from kernelviz.ops.catalog.tensors import Sizes


def linear_steps(function: StepKind, flop: int) -> Steps:
    """The product, where cuBLAS adds the bias, then a kernel of the function with `flop` operations for each element.

    >>> [step.cost.moved_bytes for step in linear_steps("relu", 1)({"m": 2, "n": 3, "k": 4}, 2)]
    [58, 24]
    """

    def steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        product = Cost(
            work_flop=2 * m * n * k + m * n,
            read_bytes=(m * k + k * n + n) * itemsize_bytes,
            written_bytes=m * n * itemsize_bytes,
        )
        return (
            Step(kind="matrix_product_with_bias", cost=product, result_bytes=m * n * itemsize_bytes),
            elementwise_step(function, m * n, itemsize_bytes, flop=flop, last=True),
        )

    return steps


def transposed_steps(sizes: Sizes, itemsize_bytes: int) -> tuple[Step, ...]:
    """A copy of A with its rows and columns exchanged, then the product.

    >>> [step.cost.moved_bytes for step in transposed_steps({"m": 2, "n": 3, "k": 4}, 2)]
    [32, 52]
    """
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    product = Cost(
        work_flop=2 * m * n * k, read_bytes=(m * k + k * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes
    )
    return (
        elementwise_step("transposition", m * k, itemsize_bytes, flop=0),
        Step(kind="matrix_product", cost=product),
    )


def linear_fusion(function: StepKind, flop: int) -> Fusion:
    """The fusion of a linear layer with a function. torch.compile leaves the product to cuBLAS on a GPU, so it is not fused."""
    return Fusion(
        family="linear_activation",
        compositions=(Composition(variants=("torch_eager", "torch_compile"), steps=linear_steps(function, flop)),),
        fused=("triton_fused", "cuda_wgmma_fused", "cutlass_fused"),
        grows="m",
        sizes={"m": 64, "n": 8192, "k": 4096},
        cpu_sizes={"m": 512, "n": 1024, "k": 256},
        work=WorkSweep(axis="k", sizes=(512, 2048, 8192, 16384), cpu_sizes=(64, 1024)),
    )


TRANSPOSED = Fusion(
    family="transpose_matmul",
    compositions=(
        Composition(variants=("contiguous_then_matmul", "cuda_transpose_then_matmul"), steps=transposed_steps),
    ),
    fused=("torch_eager", "torch_compile", "triton_strided", "triton_descriptors", "cuda_wgmma"),
    grows="k",
    sizes={"m": 4096, "n": 4096, "k": 64},
    cpu_sizes={"m": 1024, "n": 256, "k": 1024},
    work=WorkSweep(axis="n", sizes=(256, 1024, 16384), cpu_sizes=(16, 1024)),
)
