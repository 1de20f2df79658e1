"""torch.compile, whose backend is called Inductor."""

from kernelviz.core.backends.backend import Backend

BACKEND = Backend(name="inductor", title="torch.compile", written_here=False)
