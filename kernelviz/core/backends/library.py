"""Kernels of other Python packages, for example Liger's."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="library", title="library", written_here=False)
