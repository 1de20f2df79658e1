"""Only a compiler's error is "does not compile"; any other exception of a variant is named as what it is."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from kernelviz.core.reasons import Raised
from kernelviz.measure.session.failures import failure
from kernelviz.ops.kernels import nvcc
from kernelviz.ops.kernels.nvrtc import DoesNotLaunch
from kernelviz.ops.scale.extension import CompilationError


def of_module(module: str, name: str, *bases: type[Exception]) -> type[Exception]:
    """A class of a package that is not installed here, or whose constructor needs a compiler's state."""
    made: type[Exception] = types.new_class(name, bases or (Exception,))
    made.__module__ = module
    return made


def raised(error: Exception, module: str) -> Exception:
    """The error with the traceback of code of that module."""
    namespace = {"__name__": module, "error": error}
    try:
        exec("raise error", namespace)
    except Exception as caught:
        return caught
    raise AssertionError


TRITON = of_module("triton.errors", "TritonError")
COMPILERS = [
    of_module("triton.compiler.errors", "CompilationError", TRITON)("at 3:4"),
    of_module("triton.runtime.errors", "OutOfResources", TRITON)("out of resource: shared memory"),
    of_module("triton.runtime.errors", "PTXASError", TRITON)("ptxas fatal"),
    of_module("cuda.core._utils.cuda_utils", "NVRTCError", of_module("cuda.core._utils.cuda_utils", "CUDAError"))("no"),
    of_module("cuda.bindings.nvjitlink", "nvJitLinkError")("no"),
    CompilationError("the C++ compiler g++ failed"),
    nvcc.CompilationError("nvcc failed: a.cu(3): error"),
    of_module("helion.exc", "InvalidConfig")("block_sizes"),
    DoesNotLaunch("out of resources"),
    raised(RuntimeError("PassManager::run failed"), "triton.backends.nvidia.compiler"),
    raised(subprocess.CalledProcessError(1, ["gcc"]), "triton.runtime.build"),
    raised(RuntimeError("Error building extension"), "torch.utils.cpp_extension"),
]
OTHERS = [
    (ZeroDivisionError("division by zero"), "ZeroDivisionError", "division by zero"),
    (KeyError("block"), "KeyError", "'block'"),
    (AssertionError(), "AssertionError", ""),
    (RuntimeError("this CompilationError is text"), "RuntimeError", "this CompilationError is text"),
    (of_module("mykernel", "CompilationError")("a class of the user"), "CompilationError", "a class of the user"),
    (of_module("triton.runtime.errors", "InterpreterError", TRITON)("in the kernel"), "InterpreterError", "in the kernel"),
    (raised(RuntimeError("invalid argument"), "triton.backends.nvidia.driver"), "RuntimeError", "invalid argument"),
    (subprocess.CalledProcessError(1, ["true"]), "CalledProcessError", "Command '['true']' returned non-zero exit status 1."),
]  # fmt: skip


@pytest.mark.parametrize("error", COMPILERS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_compiler_does_not_compile(error: Exception) -> None:
    found = failure(error)
    assert (found.stage, found.reasons) == ("compile", ())
    assert type(error).__name__ in found.message or str(error) == found.message


def test_an_error_of_torch_compile_does_not_compile() -> None:
    # Imported here, because it takes 1.5 s, which each process of a test session would spend on collecting.
    from torch._dynamo.exc import Unsupported
    from torch._inductor.exc import CppCompileError

    errors = (
        Unsupported("call of a function that torch.compile does not know"),
        CppCompileError(["g++"], "error: no such thing"),
    )
    for error in errors:
        test_an_error_of_a_compiler_does_not_compile(error)


@pytest.mark.parametrize(("error", "kind", "text"), OTHERS, ids=[kind for _, kind, _ in OTHERS])
def test_any_other_exception_is_named(error: Exception, kind: str, text: str) -> None:
    found = failure(error)
    assert (found.stage, found.reasons, found.message) == ("crash", (Raised(type=kind),), text)


def test_an_error_around_that_of_a_compiler_does_not_compile() -> None:
    from torch._inductor.exc import InductorError

    error = RuntimeError("cannot be launched")
    error.__cause__ = InductorError(ValueError("inner"), None)
    assert failure(error).stage == "compile"


def test_no_compiler_is_imported_to_tell() -> None:
    code = (
        "import sys, kernelviz.measure.session.failures as f\n"
        "assert f.failure(KeyError('x')).stage == 'crash'\n"
        "sys.exit('triton' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
