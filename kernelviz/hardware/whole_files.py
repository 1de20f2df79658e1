"""Files that another process may read at any time."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary one beside it, so that nobody ever reads a part of it.

    Errors: OSError; then nothing of the temporary file is left. The folder must exist.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
