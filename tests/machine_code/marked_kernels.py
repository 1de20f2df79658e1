"""The committed cubins, and the main loops that were marked in them by hand."""

from __future__ import annotations

import functools
import lzma
import shutil
import tomllib
from pathlib import Path

from kernelviz.core.machine_code import KernelFacts
from kernelviz.machine_code.facts import facts_of
from kernelviz.machine_code.tools import tool_paths

HERE = Path(__file__).parent
NAMES = tuple(sorted(p.name.removesuffix(".cubin.xz") for p in (HERE / "cubins").glob("*.cubin.xz")))
MARKED = tomllib.loads((HERE / "marked.toml").read_text())["kernel"]
HAS_TOOLS = bool(tool_paths("nvdisasm")) and bool(tool_paths("cuobjdump") or shutil.which("cuobjdump"))


@functools.cache
def cubin(name: str) -> bytes:
    return lzma.decompress((HERE / "cubins" / f"{name}.cubin.xz").read_bytes())


@functools.cache
def facts(name: str) -> dict[str, KernelFacts]:
    return {f.name: f for f in facts_of(cubin(name))}
