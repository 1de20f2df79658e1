"""The op `dropout`: random numbers, one read and one write, and a mask that need not be stored."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.dropout import best
from kernelviz.ops.dropout.reference import LAGS, PARTS, bound, compared, reference
from kernelviz.ops.dropout.variants import (
    composite_eager,
    cuda_philox,
    cuda_scalar,
    torch_compile,
    torch_eager,
    torch_saved_mask,
    triton_philox,
    triton_rand,
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Every element read once and written once, one product each. A mask does not count: it can be generated again from a seed.

    >>> cost({"n": 1024}, 2)
    Cost(work_flop=1024, read_bytes=2048, written_bytes=2048)
    """
    n = sizes["n"]
    return Cost(work_flop=n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)


def _hidden(name: str, caption: str) -> Preset:
    return Preset(name=name, caption=caption, sizes={"n": ",".join(str(m * 768) for m in (1, 16, 64, 512, 4096, 8192))})


OPS = (
    Op(
        name="dropout",
        family="elementwise",
        summary="Each element dropped with probability 1/4, the others scaled by 4/3",
        formula="y = x / (1 − p) with probability 1 − p, else 0; p = 1/4",
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "kept elements: |error| ≤ 2.02 u |x / (1 − p)|, dropped ones exactly 0; the share of kept ones, overall and in 64 "
            "parts, and of pairs at 31 distances that agree: within six standard deviations"
        ),
        baseline="torch_eager",
        best=best.dropout,
        first=("torch_eager", "torch_compile", "triton_rand", "triton_philox", "cuda_philox"),
        variants=(
            composite_eager,
            torch_eager,
            torch_saved_mask,
            torch_compile,
            triton_rand,
            triton_philox,
            cuda_scalar,
            cuda_philox,
        ),
        presets=(
            _hidden("gpt-2", "GPT-2, 1 to 8192 tokens of 768"),
            _hidden("bert-base", "BERT base, 1 to 8192 tokens of 768"),
            Preset(
                name="large",
                caption="Far larger than any L2: 512 MiB to 2 GiB in half precision",
                sizes={"n": "2^27..2^29"},
            ),
        ),
        compared=compared,
        compared_outputs=(
            TensorSpec(name="value_N", axes=("n",), dtype="fp64"),
            TensorSpec(name="kept_share", axes=(1,), dtype="fp64"),
            TensorSpec(name="kept_share_of_parts", axes=(PARTS,), dtype="fp64"),
            TensorSpec(name="agreement_at_distances", axes=(len(LAGS),), dtype="fp64"),
        ),
    ),
)
