"""What one run of the tests takes of many cases: others at each commit, so that all of them have their turn.

Damaged files and large ones are without end, and the same few at every run say nothing new. A failure names its case.
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path


@functools.cache
def commit() -> str:
    """The commit that is checked out, or nothing where git does not know one."""
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout.strip()


def seed() -> int:
    """A number below 2^31 that belongs to the commit; 0 where there is none."""
    return int(commit()[:8] or "0", 16) % 2**31
