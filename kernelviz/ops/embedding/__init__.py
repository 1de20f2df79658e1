"""Rows of a table that ids name, under the three names that torch has for it: each row is found first and copied then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Each row that is named at least once read once, 8 bytes an id, a row written for each; no arithmetic.

    The ids are all rows in random order, begun again where there are fewer rows than ids: min(t, v) different ones.

    >>> cost({"v": 100, "t": 3, "d": 1024}, 2)
    Cost(work_flop=0, read_bytes=6168, written_bytes=6144)
    >>> cost({"v": 2, "t": 3, "d": 1024}, 2)
    Cost(work_flop=0, read_bytes=4120, written_bytes=6144)
    """
    v, t, row_bytes = sizes["v"], sizes["t"], sizes["d"] * itemsize_bytes
    return Cost(work_flop=0, read_bytes=min(t, v) * row_bytes + 8 * t, written_bytes=t * row_bytes)


def reference(x_VD: Tensor, ids_T: Tensor) -> Tensors:
    """The rows, element for element."""
    return (x_VD[ids_T],)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: nothing is rounded, so nothing may differ."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


def _eager_embedding(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.embedding(ids_T, x_VD)


def _eager_index_select(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.index_select(0, ids_T)


def _eager_gather(x_VD: Tensor, ids_T: Tensor) -> Tensor:
    return x_VD.gather(0, ids_T[:, None].expand(-1, x_VD.shape[1]))


def _embedding() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.nn.functional.embedding, which is index_select inside."""
        return lambda: _eager_embedding(x_VD, ids_T)

    @variant(backend="inductor", needs=("inductor",), late=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of embedding: one Triton kernel that finds the row anew for each element, and checks its id."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_embedding, x_VD, ids_T)

    return torch_eager, torch_compile


def _index_select() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.index_select along the rows, into a tensor that is there."""
        import torch

        out_TD = torch.empty((ids_T.shape[0], x_VD.shape[1]), dtype=x_VD.dtype, device=x_VD.device)
        return lambda: torch.index_select(x_VD, 0, ids_T, out=out_TD)

    @variant(backend="inductor", needs=("inductor",), late=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of index_select: one Triton kernel that finds the row anew for each element, and checks its id."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_index_select, x_VD, ids_T)

    return torch_eager, torch_compile


def _gather() -> tuple[Variant, ...]:
    @variant(backend="torch")
    def torch_eager(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.gather with the ids expanded along the row: an index is looked up for every element."""
        import torch

        ids_TD = ids_T[:, None].expand(-1, x_VD.shape[1])
        out_TD = torch.empty(ids_TD.shape, dtype=x_VD.dtype, device=x_VD.device)
        return lambda: torch.gather(x_VD, 0, ids_TD, out=out_TD)

    @variant(backend="inductor", needs=("inductor",), late=True)
    def torch_compile(x_VD: Tensor, ids_T: Tensor) -> Launch:
        """torch.compile of gather: inductor sees through the expanded index, and makes the kernel of index_select."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(_eager_gather, x_VD, ids_T)

    return torch_eager, torch_compile


@variant(backend="triton", needs=("triton", "cuda"))
def triton_row(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, one program a row: its id is read once."""
    from kernelviz.ops.embedding import triton as kernels

    return kernels.bind_row(x_VD, ids_T)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_tile(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Triton, tiles of 16 KiB, small outputs 1 KiB: several short rows or a piece of a long one a program."""
    from kernelviz.ops.embedding import triton as kernels

    return kernels.bind_tile(x_VD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_row(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one block a row, one element a thread at a time."""
    from kernelviz.ops.embedding import cuda as kernels

    return kernels.bind_row(x_VD, ids_T, words=False)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_row_vec16(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, one block a row in 16-byte words: short rows leave most of a block's threads idle."""
    from kernelviz.ops.embedding import cuda as kernels

    return kernels.bind_row(x_VD, ids_T)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_vec16_unrolled(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """CUDA C++, 16 KiB a block whatever the row length: four words of a thread under way, from as many rows as that takes."""
    from kernelviz.ops.embedding import cuda as kernels

    return kernels.bind_flat(x_VD, ids_T)


OWN = (triton_row, triton_tile, cuda_row, cuda_row_vec16, cuda_vec16_unrolled)
TOKENS = "1,16,64,512,4096,16384"


def _op(name: str, summary: str, formula: str, torch_variants: tuple[Variant, ...], presets: tuple[Preset, ...]) -> Op:
    return Op(
        name=name,
        family="layout",
        summary=summary,
        formula=formula,
        axes=(
            Axis(name="v", caption="rows of the table", default="2^16", cpu_default="2^12"),
            Axis(name="t", caption="ids", default="2^8..2^16", cpu_default="2^8,2^10,2^12"),
            Axis(name="d", caption="row length", default="4096", cpu_default="256"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(
            TensorSpec(name="x_VD", axes=("v", "d")),
            TensorSpec(name="ids_T", axes=("t",), dtype="int64", below="v", ids="permutation"),
        ),
        outputs=(TensorSpec(name="y_TD", axes=("t", "d")),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule="exact: y = x[ids], no rounding",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "triton_tile", "cuda_row_vec16", "cuda_vec16_unrolled"),
        variants=(*torch_variants, *OWN),
        presets=presets,
        slab="t",
    )


def _vocabulary(name: str, caption: str, v: int, d: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"v": str(v), "t": TOKENS, "d": str(d)})


def _large(caption: str) -> Preset:
    return Preset(name="large", caption=caption, sizes={"v": "2^17", "t": "2^16", "d": "4096"})


_ROWS = Preset(
    name="rows",
    caption="All of 2^27 elements in another order, as rows of 64 to 8192",
    sizes={"v": "2^27/d", "t": "2^27/d", "d": "64,128,256,512,1024,4096,8192"},
)

OPS = (
    _op(
        "embedding",
        "Embedding: rows of a table of vectors, one a token",
        "y[i] = w[ids[i]]",
        _embedding(),
        (
            _vocabulary("llama-3-8b", "Llama 3 8B: 128256 tokens, hidden size 4096", 128256, 4096),
            _vocabulary("llama-3-70b", "Llama 3 70B: 128256 tokens, hidden size 8192", 128256, 8192),
            _vocabulary("qwen2.5-7b", "Qwen2.5 7B: 152064 tokens, hidden size 3584", 152064, 3584),
            _vocabulary("deepseek-v3", "DeepSeek-V3: 129280 tokens, hidden size 7168", 129280, 7168),
            _vocabulary("gpt-2", "GPT-2: 50257 tokens, hidden size 768", 50257, 768),
            _vocabulary("bert-base", "BERT base: 30522 tokens, hidden size 768", 30522, 768),
            _large("65536 ids into a table of 1 GiB in bf16"),
        ),
    ),
    _op(
        "index_select",
        "Selection of rows by index",
        "y[i] = x[ids[i]]",
        _index_select(),
        (_large("65536 of 131072 rows of 8 KiB in bf16"), _ROWS),
    ),
    _op(
        "gather",
        "Gather of rows, each element by an index of its own",
        "y[i, j] = x[ids[i], j]",
        _gather(),
        (_large("65536 of 131072 rows of 8 KiB in bf16"), _ROWS),
    ),
)
