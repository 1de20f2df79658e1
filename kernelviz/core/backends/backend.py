"""The description of a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """What the variants of a backend have in common.

    `written_here`: its kernels are written in this project; those of any other backend count as a library's. `compiler`: what
    compiles its kernels for a GPU that need not be there, None if nothing does. `module`: a Python module that its variants
    need, which they name as a need by the name of the backend; `installation`: how to get it; `download_bytes`: how much that
    downloads, without what the packages themselves depend on. `program`: a program on the PATH that they need, too, and
    `program_installation`: how to get it. `not_interpreted`: why Triton's interpreter does not run its kernels, although Triton
    compiles them.
    """

    name: str
    title: str
    written_here: bool
    compiler: Literal["triton", "nvrtc", "nvcc"] | None = None
    module: str = ""
    installation: str = ""
    download_bytes: int | None = None
    program: str = ""
    program_installation: str = ""
    not_interpreted: str = ""

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter runs its kernels."""
        return self.compiler == "triton" and not self.not_interpreted
