"""Which CUDA errors end a process: those after which no call works, whichever library reports them, and no others."""

from __future__ import annotations

import pytest
import torch

from kernelviz.core.reasons import CudaError, Raised
from kernelviz.measure.session import failures
from kernelviz.measure.session.failures import failure, sticky

ADVICE = "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
"""torch appends this to every CUDA error."""
OTHERS = (1, 2, 701, 720, 900, 901)
"""Wrong arguments, too little memory, launches that need too much, and captures that fail: the next call works."""
RUNTIME_TEXTS = [
    ("an illegal memory access was encountered", True),
    ("misaligned address", True),
    ("unspecified launch failure", True),
    ("device-side assert triggered", True),
    ("unknown error", True),
    ("operation not permitted when stream is capturing", False),
    ("operation failed due to a previous error during capture", False),
    ("invalid configuration argument", False),
]


@pytest.mark.parametrize("code", [*sorted(failures._STICKY_ERRORS), *OTHERS])
def test_torch_gives_the_number(code: int) -> None:
    error = torch.AcceleratorError(f"CUDA error: something{ADVICE}")
    error.error_code = code
    assert sticky(error) == (code in failures._STICKY_ERRORS)
    reason = CudaError() if sticky(error) else Raised(type="AcceleratorError")
    assert failure(error).reasons == (reason,)


@pytest.mark.parametrize("code", [*sorted(failures._STICKY_ERRORS), *OTHERS])
def test_cuda_core_gives_the_driver_s_name_and_an_explanation(code: int) -> None:
    """The explanations of cuda.core are those of the driver's header, which are other words than the driver's own."""
    driver = pytest.importorskip("cuda.bindings.driver")
    name = driver.CUresult(code).name
    assert sticky(RuntimeError(f"{name}: While executing a kernel, the device encountered something")) == (
        code in failures._STICKY_ERRORS
    )


@pytest.mark.parametrize(("text", "ends_the_process"), RUNTIME_TEXTS)
def test_without_a_number_the_words_of_the_runtime_decide(text: str, ends_the_process: bool) -> None:
    """A call that waits for the device cannot be captured; torch's advice under that error once ended the process."""
    assert sticky(RuntimeError(f"CUDA error: {text}{ADVICE}")) == ends_the_process
    assert sticky(RuntimeError(f"Triton Error [CUDA]: {text}")) == ends_the_process


def test_an_error_of_another_library_is_none_of_cuda_s() -> None:
    error = OSError(524, "Unknown error 524")
    error.error_code = 700  # type: ignore[attr-defined]
    assert not sticky(error)
