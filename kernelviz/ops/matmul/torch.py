"""Products of torch's libraries, in exactly the precision that the problem names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor


def bind_mm(a_MK: Tensor, b_KN: Tensor, compute: str | None) -> Launch:
    """torch.mm with a setting of torch, which is global to the process, changed for the duration of each call (1 µs).

    fp32: the precision of the arithmetic. fp16, bf16: partial sums of a split K stay in fp32, which torch by default lets
    cuBLAS round to 16 bits. A captured graph keeps the kernel chosen while it was captured. Raises BadField for tf32 on a CPU.
    """
    import torch

    c_MN = torch.empty((a_MK.shape[0], b_KN.shape[1]), dtype=a_MK.dtype, device=a_MK.device)
    if not a_MK.is_cuda:
        if compute == "tf32":
            raise BadField("compute", compute, "tf32 is arithmetic of NVIDIA's tensor cores; choose ieee on a CPU")
        return lambda: torch.mm(a_MK, b_KN, out=c_MN)
    name, value = _setting(str(a_MK.dtype), compute)
    settings = torch.backends.cuda.matmul

    def launch() -> Tensor:
        before = getattr(settings, name)
        setattr(settings, name, value)
        try:
            return torch.mm(a_MK, b_KN, out=c_MN)
        finally:
            setattr(settings, name, before)

    return launch


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
    name, value = _setting(str(a.dtype), compute)
    settings = torch.backends.cuda.matmul
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def _setting(dtype: str, compute: str | None) -> tuple[str, str | bool]:
    """The attribute of torch.backends.cuda.matmul that decides, and its value (torch's newer names: the older
    ``allow_tf32`` cannot be put back to "none").

    >>> _setting("torch.float32", "tf32"), _setting("torch.bfloat16", None)
    (('fp32_precision', 'tf32'), ('allow_bf16_reduced_precision_reduction', False))
    """
    match dtype:
        case "torch.float32":
            return "fp32_precision", compute or "ieee"
        case "torch.float16":
            return "allow_fp16_reduced_precision_reduction", False
        case _:
            return "allow_bf16_reduced_precision_reduction", False
