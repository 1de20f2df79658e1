"""Products of torch's libraries in exactly the precision that a problem names: a setting of torch during each call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor


def in_precision(product: Launch, a: Tensor, compute: str | None) -> Launch:
    """A launch with products, with `precision` for the duration of each call (1 µs). `a`: a factor. A captured graph keeps the
    kernel chosen while it was captured. Errors: as `precision`."""
    if not a.is_cuda:
        with precision(a, compute):
            return product

    def launch() -> Tensor | Tensors:
        with precision(a, compute):
            return product()

    return launch


@contextmanager
def precision(a: Tensor, compute: str | None) -> Iterator[None]:
    """A setting of torch, which is global to the process, for products with the factor `a`.

    fp32: the precision of the arithmetic. fp16, bf16: partial sums of a split K stay in fp32, which torch by default lets
    cuBLAS round to 16 bits. Raises BadField for tf32 on a CPU.
    """
    import torch

    if not a.is_cuda:
        if compute == "tf32":
            raise BadField("compute", compute, "tf32 is arithmetic of NVIDIA's tensor cores; choose ieee on a CPU")
        yield
        return
    name, value = setting_of(str(a.dtype), compute)
    settings = torch.backends.cuda.matmul
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def setting_of(dtype: str, compute: str | None) -> tuple[str, str | bool]:
    """The attribute of torch.backends.cuda.matmul that decides, and its value (torch's newer names: the older
    ``allow_tf32`` cannot be put back to "none").

    >>> setting_of("torch.float32", "tf32"), setting_of("torch.bfloat16", None)
    (('fp32_precision', 'tf32'), ('allow_bf16_reduced_precision_reduction', False))
    """
    match dtype:
        case "torch.float32":
            return "fp32_precision", compute or "ieee"
        case "torch.float16":
            return "allow_fp16_reduced_precision_reduction", False
        case _:
            return "allow_bf16_reduced_precision_reduction", False
