"""Configurations of the Triton and Gluon variants of `matmul`: right in the interpreter, and of the size that was predicted."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import bind, inputs_of
from interpreter_process import interpreted_lines, written_lines

from kernelviz.core.errors import BadField
from kernelviz.ops import op_named
from kernelviz.ops.matmul.tiles import BARRIER_BYTES, shared_bytes_of_descriptors, shared_bytes_of_pointers

CONFIGURATIONS = Path(__file__).with_name("matmul_configurations.py")
MATMUL = op_named("matmul")
pytestmark = pytest.mark.xdist_group("matmul-tiles")


def test_every_configuration_is_right_in_the_interpreter() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(CONFIGURATIONS, "interpret")
    assert {line["case"].partition("[")[0] for line in lines} == {
        "triton_tuned",
        "triton_persistent",
        "triton_descriptors",
        "triton_warp_specialised",
    }
    assert all(0 < line["worst_of_bound"] <= 1 for line in lines)


def test_configurations_compile_as_predicted(compiler_cache: Path) -> None:
    """Shared memory as `admits` computes it, no spills, and other registers for each role of specialised warps."""
    pytest.importorskip("triton")
    for line in written_lines(CONFIGURATIONS, "compile", TRITON_CACHE_DIR=str(compiler_cache)):
        name, c = line["case"], MATMUL.variant_named(line["case"]).configuration
        assert c is not None
        if "tile_k_bytes" in c:
            predicted = shared_bytes_of_pointers(c, 2)
            assert (
                predicted <= line["shared_bytes"] <= predicted + (c["tile_m"] * c["tile_n"] if c.get("flatten") else 0)
            ), name
        else:
            predicted = shared_bytes_of_descriptors(c)
            assert predicted - BARRIER_BYTES <= line["shared_bytes"] <= predicted, name
        assert line["spills"] == 0, name
        specialised = {"triton_warp_specialised": [40, 232], "gluon_warp_specialised": [24, 240]}
        assert line["roles"] == specialised.get(name.partition("[")[0], [0]), name
        assert line["threads"] == ([384, 1, 1] if line["roles"] != [0] else [256, 1, 1]), name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("triton_tuned[tile_n=256,warps=4]", "256 elements"),
        ("triton_tuned[tile_n=256,stages=5]", "245760 bytes of shared memory"),
        ("triton_descriptors[stages=4]", "bytes of shared memory"),
        ("triton_descriptors[tile_n=64,parts=4]", "fewer than 32 columns"),
        ("triton_warp_specialised[stages=4]", "bytes of shared memory"),
        ("triton_warp_specialised[tile_m=256]", "256 elements"),
        ("gluon_warp_specialised[parts=1]", "2 buffers for 1 parts"),
        ("gluon_warp_specialised[stages=2,lead=2]", "the whole ring"),
        ("gluon_warp_specialised[parts=2]", "bytes of shared memory"),
    ],
)
def test_what_cannot_run_is_refused_before_it_is_compiled(name: str, message: str) -> None:
    variant = MATMUL.variant_named(name)
    dtype = "bf16" if "bf16" in (variant.dtypes or MATMUL.dtypes) else "fp16"
    refusal = variant.refuses(MATMUL.problem({"m": 4096, "n": 4096, "k": 4096}, dtype))
    assert refusal is not None
    assert message in refusal.text  # type: ignore[union-attr]


def test_a_tile_of_which_most_is_outside_the_product_is_not_measured() -> None:
    small = MATMUL.problem({"m": 16, "n": 4096, "k": 4096}, "bf16")
    assert MATMUL.variant_named("triton_tuned[tile_m=64]").refuses(small) is not None
    assert MATMUL.variant_named("triton_tuned[tile_m=32]").refuses(small) is None


@pytest.mark.parametrize("name", ["triton_descriptors", "triton_warp_specialised", "gluon_warp_specialised"])
@pytest.mark.parametrize(("sizes", "axis"), [((64, 64, 63), "k"), ((64, 60, 64), "n")])
def test_rows_that_tma_cannot_address_are_refused_by_name(name: str, sizes: tuple[int, int, int], axis: str) -> None:
    pytest.importorskip("triton")
    problem = MATMUL.problem(dict(zip("mnk", sizes, strict=True)), "bf16")
    with pytest.raises(BadField, match=rf"size {axis}: .*multiple of 16 bytes"):
        bind(MATMUL.variant_named(name), problem, inputs_of(MATMUL, problem))


def test_launches_with_scratch_memory_leave_tritons_allocator_as_it_is() -> None:
    pytest.importorskip("triton")
    import torch
    from triton.runtime import _allocation

    from kernelviz.ops.kernels.triton_scratch import ScratchContext

    pointers: list[int] = []

    def kernel(size_bytes: int) -> None:
        """As a launch does it in Triton's driver."""
        pointers.append(_allocation._allocator.get()(size_bytes, 128, None).data_ptr())

    before = _allocation._allocator.get()
    scratch = ScratchContext(torch.device("cpu"))
    for size_bytes in (384, 384, 512):
        scratch.launch(kernel, size_bytes)
    assert _allocation._allocator.get() is before
    assert pointers[0] == pointers[1] != pointers[2]
