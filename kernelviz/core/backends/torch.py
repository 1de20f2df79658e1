"""PyTorch's own operators."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="torch", title="PyTorch", written_here=False)
