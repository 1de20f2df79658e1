"""Names in place of this machine's folders in what compilers made, because documents with code are shared with other people.

Compilers name source files by their full paths, for line numbers: Triton's languages in ``loc("…")``, PTX in ``.file`` and, byte
by byte, in ``.debug_info``, cubins in ``.debug_line`` together with the time of the file. With names instead, an artifact also
has the same digest wherever the package is installed. The kernel that is launched is not changed.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import platformdirs

import kernelviz
from kernelviz.core import CodeKind
from kernelviz.measure.compiled_code.line_tables import NotRewritable, with_line_tables

ELSEWHERE = "elsewhere"
"""In place of a folder that is below none of the known ones."""
_SHORTEST_ROOT = 3
"""A shorter folder (``/``, ``/a``) is not replaced, because it could be a part of anything."""
_BEGINNING = rb"(?<![\w.~-])"
"""What stands before a whole folder in a text: nothing that would make it a part of another one."""
_END = rb"(?=[/\"'\s\0)\],;:]|$)"
"""What follows a whole folder in a text."""
_OF_PACKAGES = re.compile(rb"/(?:[^\"\n]*/)?(site-packages|dist-packages|kernelviz(?=/ops/))(?=/)")
"""In a path that a compiler states: a folder of packages of another installation, whose kernels come from a shared cache."""
_STATED_PATH = re.compile(rb"((?:\bloc\(|^\s*\.file\s+\d+\s+)\")(/[^\"\n]*/)([^\"\n/]+\")", re.MULTILINE)
"""A path that is still absolute where a compiler states that of a source file."""
_DWARF = re.compile(
    rb"^[ \t]*\.section[ \t]+\.debug_(?:abbrev|info|loc|ranges|macinfo)\b[^{}]*\{[^{}]*\}\n?", re.MULTILINE
)
"""Sections of PTX with the folder of the compilation, a byte a line. ptxas makes line numbers of `.file` and `.loc` alone."""
_INDUCTOR_FOLDER = re.compile(rb"/[^\s\"'\0]*/torchinductor_[^/\s\"'\0]*")
"""The folder of torch.compile's cache, which has the name of the user in it."""


class FolderNames:
    """Replaces folders by names, the longest folder first."""

    def __init__(self, folders: Mapping[str, str] | None = None) -> None:
        """`folders`: names by absolute folder; by default those of this process."""
        known = known_folders() if folders is None else folders
        self._names = {
            folder.rstrip("/").encode(): name.encode()
            for folder, name in known.items()
            if len(folder.rstrip("/")) >= _SHORTEST_ROOT
        }
        longest_first = b"|".join(map(re.escape, sorted(self._names, key=len, reverse=True)))
        self._folder = re.compile(_BEGINNING + b"(" + longest_first + b")" + _END) if longest_first else None

    def applied(self, kind: CodeKind, content: bytes) -> bytes:
        """The content of an artifact with names instead of folders."""
        match kind:
            case "cubin":
                return self._in_cubin(content)
            case "ptx":
                return self._in_stated_paths(_DWARF.sub(b"", content))
            case "ttir" | "ttgir":
                return self._in_stated_paths(content)
            case "source":
                return self._replaced(content)

    def folder(self, path: bytes) -> bytes:
        """A folder that a compiler states, by its name; ELSEWHERE if it is absolute and unknown."""
        named = self._replaced(_OF_PACKAGES.sub(_package, path, count=1))
        return ELSEWHERE.encode() if named.startswith(b"/") else named

    def _in_stated_paths(self, content: bytes) -> bytes:
        stated = _STATED_PATH.sub(lambda m: m[1] + self.folder(m[2].rstrip(b"/")) + b"/" + m[3], content)
        return self._replaced(stated)

    def _replaced(self, content: bytes) -> bytes:
        content = _INDUCTOR_FOLDER.sub(b"torchinductor", content)
        return content if self._folder is None else self._folder.sub(lambda match: self._names[match[1]], content)

    def _in_cubin(self, content: bytes) -> bytes:
        """The cubin with other line tables. Where they have a form that is not known, and in other sections, names take as many
        bytes as the folders, so that the file stays valid."""
        with suppress(NotRewritable):
            content = with_line_tables(content, self.folder)
        return content if self._folder is None else self._folder.sub(lambda match: self._padded(match[1]), content)

    def _padded(self, folder: bytes) -> bytes:
        """The name of a folder in as many bytes: slashes follow it, which mean the same as one."""
        return self._names[folder][: len(folder)].ljust(len(folder), b"/")


def _package(match: re.Match[bytes]) -> bytes:
    return b"kernelviz" if match[1] == b"kernelviz" else b"site-packages"


def known_folders(own: Iterable[Path] = ()) -> dict[str, str]:
    """Names by folder: this package, other packages, caches of compilers, and what is below the home or the current folder.

    `own`: folders of a user's plug-in files.
    """
    folders: list[tuple[str | Path | None, str]] = [
        (Path.home(), "~"),
        (tempfile.gettempdir(), "tmp"),
        (Path.cwd(), "."),
        (sysconfig.get_path("stdlib"), "python"),
        *((folder, "site-packages") for folder in _installed_packages()),
        (os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache", "triton-cache"),
        (os.environ.get("TORCHINDUCTOR_CACHE_DIR"), "torchinductor"),
        (os.environ.get("KERNELVIZ_CACHE") or platformdirs.user_cache_path("kernelviz"), "kernelviz-cache"),
        *((folder, "plugin") for folder in own),
        (Path(kernelviz.__file__).parent, "kernelviz"),
    ]
    names: dict[str, str] = {}
    for folder, name in folders:
        if folder:
            names |= {str(folder): name, os.path.realpath(folder): name}
    return names


def _installed_packages() -> set[str]:
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    paths |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return {path for path in paths if path}
