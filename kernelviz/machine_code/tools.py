"""Find and run NVIDIA's binary tools (nvdisasm, cuobjdump): no GPU and no driver is needed.

Both ship in the wheel of Triton and, each alone, in wheels of the CUDA toolkit. A tool should not be older than the compiler that
wrote the file, so the candidates are tried in order until one can read it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from kernelviz.core.errors import DeviceError

TIMEOUT_S = 60.0
"""For one file: nvdisasm takes 0.4 s for 1,400 instructions."""
_WHEEL_FOLDERS = ("cu13/bin", "cu12/bin", "cuda_nvdisasm/bin", "cuda_cuobjdump/bin")


class ToolUnavailable(DeviceError):
    """A binary tool of the CUDA toolkit is not installed."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        super().__init__(
            f"{tool} is not installed, and machine code cannot be read without it; "
            f"install it with `pip install nvidia-cuda-{tool}`, or install triton, whose wheel has it, too"
        )


class ToolFailed(DeviceError):
    """A binary tool is installed, but cannot read the file, for instance because a newer compiler wrote it."""

    def __init__(self, tool: str, path: Path, message: str) -> None:
        self.tool, self.path, self.message = tool, path, message
        super().__init__(
            f"{tool} ({path}) cannot read this file: {message or 'it said nothing'}; "
            f"a newer compiler may have written it: install a newer one with `pip install --upgrade nvidia-cuda-{tool}`"
        )


def tool_paths(tool: str) -> tuple[Path, ...]:
    """Every copy of a tool that is installed: Triton's, those of the CUDA wheels, the toolkit's, and the one on the PATH."""
    folders = [root / "backends" / "nvidia" / "bin" for root in _package_folders("triton")]
    for root in _package_folders("nvidia"):
        folders.extend(root / folder for folder in _WHEEL_FOLDERS)
    if home := os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH"):
        folders.append(Path(home) / "bin")
    paths = [folder / tool for folder in folders]
    if on_path := shutil.which(tool):
        paths.append(Path(on_path))
    return tuple(dict.fromkeys(p for p in paths if os.access(p, os.X_OK)))


def run_tool(tool: str, options: tuple[str, ...], content: bytes) -> str:
    """What a tool prints about a file with this content. Raises ToolUnavailable, or ToolFailed if no copy can read it."""
    paths = tool_paths(tool)
    if not paths:
        raise ToolUnavailable(tool)
    failure: ToolFailed | None = None
    with tempfile.TemporaryDirectory(prefix="kernelviz-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(content)
        for path in paths:
            try:
                done = subprocess.run(
                    [path, *options, file],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=TIMEOUT_S,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                failure = ToolFailed(tool, path, str(error))
                continue
            if done.returncode == 0:
                return done.stdout
            failure = ToolFailed(tool, path, " ".join(done.stderr.replace(str(file), "the file").split()))
    assert failure is not None
    raise failure


def _package_folders(name: str) -> tuple[Path, ...]:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    return tuple(Path(folder) for folder in (spec.submodule_search_locations or ())) if spec else ()
