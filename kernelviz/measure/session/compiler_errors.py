"""Whether an exception is an error of a compiler, by its classes and by the code that raised it, never by its text.

Classes are compared by name, because a compiler that is not loaded has raised nothing and must not be imported for this.
"""

from types import TracebackType

_CLASSES = frozenset(
    {
        ("triton", "TritonError"),  # also OutOfResources: a kernel that needs more than a multiprocessor has
        ("cuda", "NVRTCError"),
        ("cuda", "nvJitLinkError"),
        ("cuda", "nvvmError"),
        ("kernelviz", "CompilationError"),  # ops.scale.extension, ops.kernels.nvcc
        ("kernelviz", "DoesNotLaunch"),  # ops.kernels.nvrtc, as OutOfResources
    }
)
"""Package and name of classes of compiler errors; their subclasses are, too."""
_NOT = frozenset({("triton", "InterpreterError")})
"""Subclasses that are no compiler errors: Triton's interpreter runs a kernel as Python."""
_MODULES = frozenset({"torch._dynamo.exc", "torch._inductor.exc", "helion.exc"})
"""Modules of which every exception is torch.compile's or Helion's."""
_BUILDS = ("triton.compiler", "triton.runtime.build", "torch.utils.cpp_extension", "cuda.core._program")
"""Modules that compile. Their C++ code and the programs that they start raise plain RuntimeError and CalledProcessError."""


def of_compiler(error: BaseException) -> bool:
    """Whether a compiler raised this exception."""
    names = {(base.__module__.partition(".")[0], base.__name__) for base in type(error).__mro__}
    if names & _NOT:
        return False
    if names & _CLASSES or any(base.__module__ in _MODULES for base in type(error).__mro__):
        return True
    return _raised_in_a_build(error.__traceback__)


def _raised_in_a_build(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        backend = module.startswith("triton.backends.") and module.endswith(".compiler")  # its driver launches kernels
        if backend or any(module == build or module.startswith(f"{build}.") for build in _BUILDS):
            return True
        traceback = traceback.tb_next
    return False
