"""Kernels of long and of short rows as text for the emulator: with our own rows.cuh and what else they use of CUDA."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor

from kernelviz.ops.kernels import nvrtc

INLINED = (
    *("known_normalisation.cuh", "row_units.cuh", "row_losses.cuh", "split_normalisation.cuh", "row_beside.cuh"),
    *(
        "split_rows.cuh",
        "slab_normalisation.cuh",
        "slabs.cuh",
        "slab_registers.cuh",
        "slab_stages.cuh",
        "slab_rows.cuh",
    ),
    *("rows.cuh", "adjacent_sum.cuh", "access_bits.cuh", "label.cuh"),
)
ON_CHIP = """#include "rows.cuh"
template <class Vectors> void make_opaque(Vectors&) {}
"""
FUNNEL_SHIFT = """
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
    return ((unsigned long long)high << 32 | low) >> (bits & 31);
}
"""
EIGHT_BIT = """
// As cvt.rn.satfinite.e4m3x2.f32 rounds: to nearest, ties to even.
inline unsigned char to_e4m3(float value) {
    const unsigned char sign = __float_as_uint(value) >> 31 << 7;
    const float size = fabsf(value);
    if (size != size) {
        return sign | 0x7f;
    }
    unsigned char below = 0;  // the largest number that is not above
    auto number = [](int bits) {
        const int exponent = bits >> 3, fraction = bits & 7;
        return exponent ? (8 + fraction) * exp2f(exponent - 10) : fraction * exp2f(-9);
    };
    while (below < 0x7e && number(below + 1) <= size) {
        ++below;
    }
    if (below < 0x7e) {
        const float low = size - number(below), high = number(below + 1) - size;
        below += high < low || (high == low && below % 2);
    }
    return sign | below;
}
inline unsigned char to_int8(float value) {
    const float whole = __builtin_nearbyintf(value);
    return (unsigned char)(signed char)(whole > 127 ? 127 : whole < -128 ? -128 : whole);
}
template <bool IS_INT8> unsigned pack_8_bit(float a, float b, float c, float d) {
    auto rounded = [](float value) -> unsigned { return IS_INT8 ? to_int8(value) : to_e4m3(value); };
    return rounded(a) | rounded(b) << 8 | rounded(c) << 16 | rounded(d) << 24;
}
"""


def text_of(source: Path, eps: float | None = None) -> str:
    """A kernel's text with our headers of rows in place of their includes, so that mistakes can be planted there, too.

    Instructions of clusters, which blocks of a row do not form here, are left out, and so is what keeps long rows on chip. `eps`
    replaces the argument of that name, since the emulator passes whole numbers only.
    """
    text = source.read_text().replace('#include "on_chip_rows.cuh"\n', ON_CHIP)
    for name in INLINED:
        include, header = f'#include "{name}"\n', (nvrtc.HEADERS / name).read_text()
        header = header.replace("#pragma once\n", "")
        first, *rest = text.split(include)
        text = first + (header if rest else "") + "".join(rest)
    text = text.replace('#include "eight_bit.cuh"\n', EIGHT_BIT)
    text = text.replace('#include "conversions.cuh"\n', '#include "conversions.cuh"\n' + FUNNEL_SHIFT)
    text = re.sub(r'asm volatile\("(?:mapa|st\.shared::cluster|barrier\.cluster).*\n', "\n", text)
    if eps is not None:
        text = text.replace("+ eps)", f"+ {eps}f)")
    text = text.replace("(memory + bytes)", "((unsigned char*)emulated::dynamic_shared_pointer() + bytes)")
    return text.replace(
        "reinterpret_cast<Terms*>(memory)", "reinterpret_cast<Terms*>(emulated::dynamic_shared_pointer())"
    )


def is_softmax_gradient(dx_MN: Tensor, y_MN: Tensor, dy_MN: Tensor) -> bool:
    """Whether dx is y (dy - Σ y dy) up to sums in fp32 and one rounding to the output's format."""
    y, dy = y_MN.double(), dy_MN.double()
    expected = y * (dy - (y * dy).sum(-1, keepdim=True))
    rounding = 2**-8 * expected.abs() if dx_MN.dtype is torch.bfloat16 else 0
    allowed = rounding + 2**-20 * y * (dy.abs() + (y * dy.abs()).sum(-1, keepdim=True))
    return bool(((dx_MN.double() - expected).abs() <= allowed).all())
