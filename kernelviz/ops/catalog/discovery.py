"""All ops of this installation, and a user's own variants from files."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

from kernelviz.core.errors import BadField, UnknownName
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.variant import Variant

FAMILIES = Path(__file__).parents[1]
ENTRY_POINTS = "kernelviz.ops"
SHARED = ("catalog", "kernels")
"""Packages that are no families: they have no ops."""


@functools.cache
def catalogue() -> Mapping[str, Op]:
    """All ops by name, families in alphabetical order. Imports no torch. Read once per process."""
    ops: dict[str, Op] = {}
    for module in pkgutil.iter_modules([str(FAMILIES)]):
        if module.ispkg and module.name not in SHARED:
            for op in importlib.import_module(f"kernelviz.ops.{module.name}").OPS:
                ops[op.name] = op
    return MappingProxyType(ops)


def op_named(name: str, ops: Mapping[str, Op] | None = None) -> Op:
    """The op of that name. Errors: UnknownName with the nearest name."""
    known = catalogue() if ops is None else ops
    try:
        return known[name]
    except KeyError:
        raise UnknownName("op", name, known) from None


def with_plugins(paths: Iterable[str]) -> Mapping[str, Op]:
    """The catalogue with the variants of the files at `paths` and of the entry points added.

    Runs the code of those files, so only the worker calls it. Errors: BadField with the path and what is wrong.
    """
    ops = dict(catalogue())
    modules = [_load(Path(p)) for p in paths]
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        if isinstance(loaded, ModuleType):
            modules.append(loaded)
    for module in modules:
        where = getattr(module, "__file__", module.__name__)
        variants = [v for v in vars(module).values() if isinstance(v, Variant)]
        own_ops = getattr(module, "OPS", ())
        if not variants and not own_ops:
            raise BadField(
                "plug-in", where, "it holds no variant; decorate a bind function with @variant(op=…, backend=…)"
            )
        for op in own_ops:
            ops[op.name] = op
        in_own_ops = {v.name for op in own_ops for v in op.variants}
        for added in variants:
            if added.name in in_own_ops:
                continue
            if added.op is None:
                raise BadField("plug-in", where, f"variant {added.name!r} names no op; write @variant(op='rmsnorm', …)")
            ops[added.op] = op_named(added.op, ops).plus((added,))
    return MappingProxyType(ops)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadField("plug-in", path, "there is no such file")
    name = f"kernelviz_plugin_{path.stem}_{abs(hash(str(path.resolve()))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadField("plug-in", path, "it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # triton.jit reads the source through the module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadField("plug-in", path, f"importing it raised {type(error).__name__}: {error}") from error
    return module
