"""Gluon, Triton's language in which a kernel states layouts, shared memory and barriers itself."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(
    name="gluon",
    title="Gluon",
    written_here=True,
    compiler="triton",
    module="triton.experimental.gluon",
    installation="pip install 'triton>=3.6'",
    not_interpreted="Triton's interpreter has no operations of Gluon (3.7)",
)
