"""CUDA C++, compiled by NVRTC."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="cuda", title="CUDA C++", written_here=True, compiler="nvrtc")
