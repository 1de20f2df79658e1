"""How the weights of `w4a16_matmul` are stored.

w_NGB: for each output feature and each group of 128 input features, 64 bytes. Byte b of a group holds the weights of input
features 2b (low 4 bits) and 2b + 1 (high 4 bits) of the group, so four bytes are eight neighbouring weights. s_GN: the scale of
each group and output feature. z_GH: the zero points; byte h of a group holds those of output features 2h (low 4 bits) and 2h + 1
(high 4 bits). A weight is (q − zero) · scale. The last group is stored whole; what it holds beyond K counts for nothing, and so
does the second zero point of the last byte if N is odd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField

if TYPE_CHECKING:
    from torch import Tensor

GROUP = 128
"""Input features that share a scale and a zero point."""
GROUP_BYTES = GROUP // 2
TILE = 16
"""Output features whose groups are neighbours after `shuffled`: those of one product of tensor cores."""


def groups(k: int) -> int:
    """Groups along K.

    >>> groups(4096), groups(130)
    (32, 2)
    """
    return -(-k // GROUP)


def unpacked(bytes_: Tensor) -> Tensor:
    """The 4-bit numbers of each row of bytes, low half first: shape (…, B) becomes (…, 2B), still uint8."""
    import torch

    return torch.stack((bytes_ & 15, bytes_ >> 4), dim=-1).flatten(-2)


def dequantised(w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, k: int) -> Tensor:
    """The weights (N, K) in the dtype of the scales: one subtraction, which is exact, and one product, which is rounded."""
    n = len(w_NGB)
    q_NGE = unpacked(w_NGB).to(s_GN.dtype)
    z_NG = unpacked(z_GH)[:, :n].t().to(s_GN.dtype)
    return ((q_NGE - z_NG[:, :, None]) * s_GN.t()[:, :, None]).flatten(1)[:, :k]


def shuffled(w_NGB: Tensor) -> Tensor:
    """The weights in the order in which a warp of tensor cores reads them: shape (⌈N/16⌉, G, 1024), zeros after the last feature.

    The 1024 bytes of a tile of 16 features and a group are those of features 0 to 7, then 8 to 15, each 64 bytes of a feature.
    """
    import torch

    n, g, size = w_NGB.shape
    tiles = -(-n // TILE)
    padded = torch.nn.functional.pad(w_NGB, (0, 0, 0, 0, 0, tiles * TILE - n))
    return padded.view(tiles, TILE, g, size).transpose(1, 2).reshape(tiles, g, TILE * size)


def require_aligned(**tensors: Tensor) -> None:
    """Raises BadField naming the first tensor that does not begin at a multiple of 16 bytes."""
    for name, tensor in tensors.items():
        if tensor.data_ptr() % 16:
            message = "this kernel reads 16 bytes at a time; copy the tensor to memory of its own"
            raise BadField(f"input {name}", f"address {tensor.data_ptr():#x}", message)
