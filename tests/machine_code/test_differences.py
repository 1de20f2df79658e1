"""Differences between committed cubins, whose main loops were marked by hand."""

from __future__ import annotations

import pytest
from marked_kernels import HAS_TOOLS, facts
from msgspec.structs import replace

from kernelviz.core.machine_code import AccessType, CopyType, FactDifference, KernelFacts
from kernelviz.machine_code.differences import fact_differences
from kernelviz.text.code_differences import describe_fact_difference

pytestmark = [
    pytest.mark.xdist_group("machine_code"),
    pytest.mark.skipif(not HAS_TOOLS, reason="neither triton nor the CUDA toolkit is installed: no nvdisasm"),
]


def only(name: str) -> KernelFacts:
    (kernel,) = facts(name).values()
    return kernel


def listed(a: KernelFacts, b: KernelFacts) -> dict[tuple[object, ...], tuple[object, object]]:
    return {(d.region, d.fact, d.detail): (d.a, d.b) for d in fact_differences(a, b)}


def test_a_kernel_does_not_differ_from_itself() -> None:
    for name in ("matmul-sm_80", "matmul_warp_specialised-sm_90", "softmax_three_pass-sm_90"):
        assert fact_differences(only(name), only(name)) == ()


def test_architectures_differ_in_their_tensor_instructions() -> None:
    found = listed(only("matmul-sm_80"), only("matmul-sm_90"))
    assert found["kernel", "technique", "wgmma"] == (False, True)
    assert found["kernel", "technique", "mma_sync"] == (True, False)
    assert found["main_loop", "tensor_instruction", "HMMA.16816.F32.BF16"] == (64, 0)
    assert found["main_loop", "tensor_instruction", "HGMMA.64x128x16.F32.BF16"] == (0, 4)
    loads = AccessType(space="shared", kind="load", width_bytes=16)
    assert found["main_loop", "access", loads] == (24, 0)
    # Both copy by cp.async, in equal numbers.
    assert ("main_loop", "copy", CopyType(kind="cp_async", multicast=False, width_bytes=16)) not in found


def test_where_the_numbers_of_warp_roles_differ_whole_kernels_are_compared() -> None:
    found = listed(only("matmul_warp_specialised-sm_90"), only("matmul_not_specialised-sm_90"))
    assert found["kernel", "warp_roles", ""] == (3, 1)
    assert found["kernel", "technique", "warp_specialised"] == (True, False)
    assert {region for region, _, _ in found} == {"kernel"}


def test_what_only_one_kernel_loops_over_is_not_compared_by_iteration() -> None:
    looping = only("softmax_three_pass-sm_90")
    (role,) = looping.roles
    unrolled = replace(looping, roles=(replace(role, main_loop=None),))
    assert list(listed(looping, unrolled)) == [("body", "has_loop", "")]


def test_text_names_both_values_and_the_place() -> None:
    texts = [str(describe_fact_difference(d)) for d in fact_differences(only("matmul-sm_80"), only("matmul-sm_90"))]
    assert {"warp-level MMA: yes → no", "wgmma: no → yes"} <= set(texts)
    copies = CopyType(kind="tma_load", multicast=True, width_bytes=None)
    difference = FactDifference(region="main_loop", role=2, fact="copy", detail=copies, a=0, b=1)
    text = "TMA load (multicast) in an iteration of the main loop of warp role 2: 0 → 1"
    assert str(describe_fact_difference(difference)) == text
