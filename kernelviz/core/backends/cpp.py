"""C++ for the processor, built as an extension of PyTorch."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="cpp", title="C++", written_here=True)
