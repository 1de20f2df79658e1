"""cut-cross-entropy, Triton kernels of Apple for the cross-entropy of a linear layer."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(
    name="cut_cross_entropy",
    title="cut-cross-entropy",
    written_here=False,
    module="cut_cross_entropy",
    installation="pip install cut-cross-entropy==25.1.1",
    download_bytes=22_672,
)
