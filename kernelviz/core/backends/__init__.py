"""What variants are written in: one module for each backend, with a ``BACKEND`` that says what it is and what it needs.

There is no list: `BACKENDS` has the backend of each module of this package.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core.backends.backend import Backend

DECLARATION = "backend"
"""The module of the class, which is no backend."""


def _backends() -> Mapping[str, Backend]:
    modules = (m.name for m in pkgutil.iter_modules(__path__) if m.name != DECLARATION)
    backends = (importlib.import_module(f"{__name__}.{name}").BACKEND for name in modules)
    return MappingProxyType({backend.name: backend for backend in backends})


BACKENDS = _backends()
"""All backends by name."""
