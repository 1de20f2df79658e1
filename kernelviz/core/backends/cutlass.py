"""CUTLASS, NVIDIA's C++ templates of matrix products, compiled by nvcc."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(
    name="cutlass",
    title="CUTLASS",
    written_here=False,
    compiler="nvcc",
    module="cutlass_library",
    installation="pip install 'kernelviz[cutlass]' (or --no-deps nvidia-cutlass==4.2.0.0, whose headers are enough)",
    download_bytes=6_440_597,
    program="nvcc",
    program_installation="the CUDA toolkit (12.3 or later), and add its bin folder to PATH",
)
