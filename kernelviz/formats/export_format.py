"""What a format that runs can be written in says of itself."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelviz.core import Run


@dataclass(frozen=True, kw_only=True)
class Export:
    """A way to write a run. `encode` gives the bytes of the whole file; `suffix` is the file's ending, with its dot.

    `description`: what the file is and holds, for a list to choose from.
    """

    name: str
    suffix: str
    media_type: str
    encode: Callable[[Run], bytes]
    description: str = ""
