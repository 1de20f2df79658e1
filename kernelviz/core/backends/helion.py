"""Helion, PyTorch's language of tiles, which generates Triton."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(
    name="helion",
    title="Helion",
    written_here=True,
    module="helion",
    installation="pip install 'kernelviz[helion]' (or --no-deps helion==1.5.1 filecheck)",
    download_bytes=4_707_428,
)
