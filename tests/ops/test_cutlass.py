"""The kernel of CUTLASS compiles without a GPU and shows its techniques, where nvcc and CUTLASS's headers are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import compiled_by

from kernelviz.core.backends import BACKENDS
from kernelviz.hardware.toolchain import no_package
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.techniques import expected_on, techniques_of
from kernelviz.ops import Op, Variant
from tests.sample_gpu_facts import H200


@pytest.mark.timeout(900)
@pytest.mark.skipif(no_package(BACKENDS["cutlass"]) is not None, reason="needs nvcc and the headers of CUTLASS")
@pytest.mark.parametrize(("op", "variant"), compiled_by("nvcc"), ids=lambda x: x.name)
def test_it_compiles_and_shows_its_techniques(
    op: Op, variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from kernelviz.measure.compile_ahead.nvcc_loader import CompileOnlyNvcc
    from kernelviz.measure.compile_ahead.stand_in import gpu_of, stand_ins
    from kernelviz.ops.kernels import nvcc

    cubins: list[bytes] = []
    monkeypatch.setenv("KERNELVIZ_CACHE", str(tmp_path))
    monkeypatch.setattr(nvcc, "active", CompileOnlyNvcc("sm_90", lambda name, cubin, shared: cubins.append(cubin)))
    problem = op.problem({"m": 129, "n": 264, "k": 136}, "bf16")
    with gpu_of(H200):
        variant.bind(*stand_ins(op.inputs, problem), **variant.keywords(problem))()
    (kernel,) = facts_of(cubins[0])
    assert expected_on(variant.techniques, "sm_90") <= techniques_of(kernel)
    assert kernel.local_bytes == 0, "registers are spilled"
