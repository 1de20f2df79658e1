"""Arithmetic rates by precision: matrix products, and multiply-adds in registers.

Matrix products give the rate of the tensor cores, or that of the library without tensor cores. Multiply-adds in registers give
the peak rate of a GPU's vector units.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernelviz.core import Device, Roof
from kernelviz.core.run import Unit
from kernelviz.measure.roofs.candidate import Candidate, Contest
from kernelviz.measure.roofs.streams import SOURCE
from kernelviz.measure.session import failures
from kernelviz.measure.timing.timer import Calls
from kernelviz.ops import Launch, op_named
from kernelviz.ops.kernels import nvrtc

SIZES = (4096, 8192)
"""At 4096 the SM clock stays high (172 us for bf16). At 8192 there are more flop per byte, at a lower clock."""
LONG_S = 0.012
"""A product that would take longer than this is measured at the smaller size only: burst allows 40 ms of load in 200 ms."""
HOST_SIZES = (256, 512, 1024, 2048)
"""On a CPU: the largest of these that takes no longer than the effort allows."""
TENSOR_FP64 = frozenset({(8, 0), (9, 0), (10, 0)})
"""Compute capabilities whose tensor cores multiply fp64 (PTX ISA, mma.m8n8k4.f64, at full rate: A100, H100, H200, B200)."""
CHAINS, UNROLLED = 8, 16
"""Independent chains per thread, and multiply-adds of each chain per round. roofs.cu has the same values."""
_THREADS = 512


@dataclass(frozen=True, slots=True)
class Product:
    """A precision, its unit, and the function that binds a product of two n x n matrices."""

    precision: str
    unit: Unit | None
    bind: Callable[[int, torch.device], Launch]
    how: str


def product_roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    for product in gpu_products(device) if device.kind == "cuda" else host_products():
        yield contest.best(_candidates(product, device, contest.effort.host_product_s))


def gpu_products(device: Device) -> Sequence[Product]:
    """The products of this GPU. Precisions that torch or the GPU does not support are left out when they are bound."""
    capability = device.compute_capability or (0, 0)
    fp64_unit: Unit = "tensor" if capability in TENSOR_FP64 else "vector"
    products = (
        ((0, 0), Product("fp32", "vector", _matmul(torch.float32, "ieee"), "torch mm")),
        ((0, 0), Product("tf32", "tensor", _matmul(torch.float32, "tf32"), "torch mm")),
        ((0, 0), Product("fp16", "tensor", _matmul(torch.float16), "torch mm")),
        ((0, 0), Product("bf16", "tensor", _matmul(torch.bfloat16), "torch mm")),
        ((0, 0), Product("fp64", fp64_unit, _fp64, "torch mm")),
        ((8, 9), Product("fp8", "tensor", _fp8, "torch _scaled_mm, e4m3 to bf16, fast accumulation")),
        ((7, 5), Product("int8", "tensor", _int8, "torch _int_mm, int8 to int32")),
    )
    return [product for since, product in products if capability >= since]


def host_products() -> Sequence[Product]:
    floats = (("fp32", _matmul(torch.float32)), ("bf16", _matmul(torch.bfloat16)), ("fp64", _fp64))
    return [Product(precision, None, bind, "torch mm") for precision, bind in floats]


def _candidates(product: Product, device: Device, host_product_s: float) -> Iterator[Candidate]:
    for n in SIZES if device.kind == "cuda" else (_host_size(product, host_product_s),):
        try:
            launch = product.bind(n, torch.device(device.id))
            launch()
            once_s = _once_s(launch)
        except (RuntimeError, NotImplementedError, AttributeError, TypeError) as error:
            if failures.sticky(error) or failures.out_of_memory(error):
                raise
            return  # This torch or this GPU does not support the precision, so there is no such roof.
        if n != SIZES[0] and device.kind == "cuda" and once_s > LONG_S:
            return
        itemsize = {"tf32": 4, "fp32": 4, "fp64": 8, "fp8": 1, "int8": 1}.get(product.precision, 2)
        output_itemsize = {"fp8": 2, "int8": 4}.get(product.precision, itemsize)
        roof = Roof(
            name="matmul",
            precision=product.precision,
            unit=product.unit,
            moved_bytes=n * n * (2 * itemsize + output_itemsize),
            how=f"{product.how} {n}x{n}x{n}, random data",
        )
        yield Candidate(roof, launch, 2.0 * n**3)


def _once_s(launch: Launch) -> float:
    """The time of one more call by the host clock. Its error of 10 us does not matter here."""
    wait: Callable[[], None] = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    return Calls(launch, wait).eager(1)[0][0]


def _host_size(product: Product, most_s: float) -> int:
    """The largest size whose product takes at most `most_s`, extrapolated from the smallest size."""
    least = HOST_SIZES[0]
    launch = product.bind(least, torch.device("cpu"))
    launch()
    once_s = min(_once_s(launch) for _ in range(3))
    return max((n for n in HOST_SIZES if once_s * (n / least) ** 3 <= most_s), default=least)


def _matmul(dtype: torch.dtype, compute: str | None = None) -> Callable[[int, torch.device], Launch]:
    """A function that binds the matmul variant of the catalogue, which uses the same settings of torch."""
    variant = op_named("matmul").variant_named("torch_eager")

    def bind(n: int, where: torch.device) -> Launch:
        a, b = (torch.randn((n, n), device=where).to(dtype) for _ in range(2))
        launch: Launch = variant.bind(a, b, compute=compute)
        return _quiet(launch)

    return bind


def _fp64(n: int, where: torch.device) -> Launch:
    a, b = (torch.randn((n, n), dtype=torch.float64, device=where) for _ in range(2))
    out = torch.empty_like(a)
    return _quiet(lambda: torch.mm(a, b, out=out))


def _fp8(n: int, where: torch.device) -> Launch:
    a, b = (torch.randn((n, n), device=where).to(torch.float8_e4m3fn) for _ in range(2))
    scale = torch.ones((), device=where)
    out = torch.empty((n, n), dtype=torch.bfloat16, device=where)
    return _quiet(
        lambda: torch._scaled_mm(
            a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True, out=out
        )
    )


def _int8(n: int, where: torch.device) -> Launch:
    a, b = (torch.randint(-128, 128, (n, n), dtype=torch.int8, device=where) for _ in range(2))
    out = torch.empty((n, n), dtype=torch.int32, device=where)
    return _quiet(lambda: torch._int_mm(a, b.t(), out=out))


def _quiet(launch: Launch) -> Launch:
    """The launch with one element of its output as its result, because returned outputs are poisoned before each call."""
    first = launch()
    seen = (first if isinstance(first, Tensor) else first[0])[:1, :1]
    return lambda: (launch(), seen)[1]


@dataclass(frozen=True, slots=True)
class Format:
    """A precision, its lanes per register, -1 and 1 as arguments, and the least compute capability."""

    precision: str
    lanes: int
    minus_one: Any
    one: Any
    rounds: int
    since: tuple[int, int] = (5, 3)


# 512 rounds of fp32 take some 0.26 ms on an H200; launch and tail are 0.5 % of that.
FORMATS = (
    Format("fp32", 1, ctypes.c_float(-1), ctypes.c_float(1), 512),
    Format("fp64", 1, ctypes.c_double(-1), ctypes.c_double(1), 256),
    Format("fp16", 2, ctypes.c_uint(0xBC00BC00), ctypes.c_uint(0x3C003C00), 512),
    Format("bf16", 2, ctypes.c_uint(0xBF80BF80), ctypes.c_uint(0x3F803F80), 512, (8, 0)),
)


def vector_roofs(device: Device, contest: Contest) -> Iterator[Roof | None]:
    for number in FORMATS:
        if (device.compute_capability or (0, 0)) >= number.since:
            yield contest.best([_multiply_adds(number, torch.device(device.id))])


def _multiply_adds(number: Format, where: torch.device) -> Candidate:
    properties = torch.cuda.get_device_properties(where)
    blocks = properties.multi_processor_count * (properties.max_threads_per_multi_processor // _THREADS)
    flop = 2.0 * number.lanes * CHAINS * UNROLLED * number.rounds * blocks * _THREADS
    how = f"own kernel, {CHAINS} chains of multiply-adds a thread in registers, {blocks} blocks of {_THREADS}"
    kernel = nvrtc.kernel(SOURCE, f"kernelviz_fma_{number.precision}")
    sink = torch.zeros(2, device=where)

    def launch() -> Tensor:
        rounds = ctypes.c_int(number.rounds)
        nvrtc.launch(kernel, blocks, _THREADS, sink.data_ptr(), rounds, number.minus_one, number.one)
        return sink

    return Candidate(Roof(name="fma", precision=number.precision, unit="vector", how=how), launch, flop)
