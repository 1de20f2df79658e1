"""Triton."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="triton", title="Triton", written_here=True, compiler="triton")
