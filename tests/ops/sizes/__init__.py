"""Sizes that kernels get wrong, a module a family: ODD (1, primes, a block and its neighbours, rows that do not fit a register
file), LARGE (further ones, for a GPU only), COMPILED (one size for each kernel and configuration that a variant chooses
between, with multiples of everything and without), each by op. Imports no torch.
"""

import importlib
import pkgutil

Sizes = dict[str, tuple[dict[str, int], ...]]


def _all(kind: str) -> Sizes:
    found: Sizes = {}
    for module in pkgutil.iter_modules(__path__):
        found |= getattr(importlib.import_module(f"{__name__}.{module.name}"), kind, {})
    return found


ODD, LARGE, COMPILED = _all("ODD"), _all("LARGE"), _all("COMPILED")
