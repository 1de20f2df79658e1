"""Capture what compilers made of one variant, by hooks round its bind and its first call.

The hooks see which kernels and graphs are *used*, not which are compiled, because most of them come from a cache of the process
or of the disk: Triton's kernels as `JITFunction.run` returns them, ours of NVRTC and nvcc by the drivers of `ops.kernels`, and
inductor's graphs as they are called. The sources of a C++ extension are the files that the variant's source digest follows.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import msgspec

from kernelviz.core import CodeContent, CompiledCode
from kernelviz.core.code import MOST_KERNELS
from kernelviz.measure.compiled_code.artifacts import Artifacts
from kernelviz.measure.compiled_code.extension_sources import ExtensionSources
from kernelviz.measure.compiled_code.folder_names import FolderNames, known_folders
from kernelviz.measure.compiled_code.inductor_graphs import InductorGraphs
from kernelviz.measure.compiled_code.nvcc_libraries import NvccLibraries
from kernelviz.measure.compiled_code.nvrtc_kernels import NvrtcKernels
from kernelviz.measure.compiled_code.triton_kernels import TritonKernels
from kernelviz.ops import Variant


class Watcher(Protocol):
    """Notes what one compiler's code is used, while its hook is installed."""

    def install(self, undo: ExitStack) -> None:
        """Install the hook if the compiler's modules are imported and it is not installed yet. `undo` removes it. Called when
        binding begins and when it has ended, because a bind may import the compiler."""

    def bound(self) -> None:
        """The first call begins: what is used from now on is what the timed calls use."""

    def codes(self, artifacts: Artifacts) -> Sequence[CompiledCode]:
        """What the first call used; what binding used, if that is nothing."""


class Capture:
    """A context in which a variant is bound and called. Errors of the capture are printed to the log and never raised, because a
    case without its code is better than no case."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._watchers: tuple[Watcher, ...] = (
            InductorGraphs(),
            TritonKernels(),
            NvrtcKernels(),
            NvccLibraries(),
            ExtensionSources(variant),
        )
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        self._install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def bound(self) -> None:
        """Binding has ended, and the first call comes next."""
        self._install()
        for watcher in self._watchers:
            watcher.bound()

    def code(self) -> tuple[tuple[CompiledCode, ...], tuple[CodeContent, ...]]:
        """What was made for the case, and the contents of its artifacts. Call it after the context has ended."""
        artifacts = Artifacts(FolderNames(known_folders(_plugin_folders(self._variant))))
        codes: list[CompiledCode] = []
        for watcher in self._watchers:
            codes += _safely(partial(watcher.codes, artifacts)) or ()
        plugin = is_plugin(self._variant)
        marked = [msgspec.structs.replace(code, plugin=plugin) for code in codes if code.artifacts]
        unique = {repr(code): code for code in marked if _safely(partial(_checked, code)) is not None}
        named = tuple(unique.values())[:MOST_KERNELS]
        used = {artifact.digest for code in named for artifact in code.artifacts}
        return named, tuple(content for digest, content in artifacts.contents.items() if digest in used)

    def _install(self) -> None:
        for watcher in self._watchers:
            _safely(partial(watcher.install, self._undo))


def _checked(code: CompiledCode) -> Sequence[CompiledCode]:
    """The description, if it has the declared types: its facts are attributes of other packages. Errors: ValidationError."""
    return (msgspec.json.decode(msgspec.json.encode(code), type=CompiledCode),)


def is_plugin(variant: Variant) -> bool:
    """Whether a user's own file declares the variant."""
    return not str(getattr(variant.bind, "__module__", "")).startswith("kernelviz.ops.")


def _plugin_folders(variant: Variant) -> tuple[Path, ...]:
    """The folder of the file that declares the variant, if it is a user's own."""
    code = getattr(variant.bind, "__code__", None)
    return (Path(code.co_filename).absolute().parent,) if code is not None and is_plugin(variant) else ()


def _safely(act: Callable[[], Sequence[CompiledCode] | None]) -> Sequence[CompiledCode] | None:
    try:
        return act()
    except Exception:
        traceback.print_exc()
        return None
