"""Number formats: name, size, and unit roundoff (half the distance from 1 to the next number)."""

from dataclasses import dataclass

from kernelviz.core.errors import UnknownName


@dataclass(frozen=True, kw_only=True, slots=True)
class Dtype:
    """A storage format. `unit_roundoff` is 2^-p for p significant bits (IEEE 754; bfloat16 has p = 8)."""

    name: str
    torch_name: str
    itemsize_bytes: int
    unit_roundoff: float
    largest: float


DTYPES: dict[str, Dtype] = {
    d.name: d
    for d in (
        Dtype(name="fp32", torch_name="float32", itemsize_bytes=4, unit_roundoff=2**-24, largest=3.4028e38),
        Dtype(name="fp16", torch_name="float16", itemsize_bytes=2, unit_roundoff=2**-11, largest=65504.0),
        Dtype(name="bf16", torch_name="bfloat16", itemsize_bytes=2, unit_roundoff=2**-8, largest=3.3895e38),
        Dtype(name="fp64", torch_name="float64", itemsize_bytes=8, unit_roundoff=2**-53, largest=1.79e308),
        # OCP 8-bit floating point, E4M3 without infinities: 3 fraction bits, the largest number is 1.75 x 2^8.
        Dtype(name="fp8", torch_name="float8_e4m3fn", itemsize_bytes=1, unit_roundoff=2**-4, largest=448.0),
        Dtype(name="int8", torch_name="int8", itemsize_bytes=1, unit_roundoff=0.0, largest=127.0),
        Dtype(name="uint8", torch_name="uint8", itemsize_bytes=1, unit_roundoff=0.0, largest=255.0),
        Dtype(name="int32", torch_name="int32", itemsize_bytes=4, unit_roundoff=0.0, largest=2.0**31),
        Dtype(name="int64", torch_name="int64", itemsize_bytes=8, unit_roundoff=0.0, largest=2.0**63),
    )
}

# tf32 keeps 10 fraction bits of its inputs (p = 11); it is a compute precision, never a storage format.
TF32_UNIT_ROUNDOFF = 2**-11


def dtype(name: str) -> Dtype:
    """The format called `name`; raises UnknownName."""
    try:
        return DTYPES[name]
    except KeyError:
        raise UnknownName("dtype", name, DTYPES) from None
