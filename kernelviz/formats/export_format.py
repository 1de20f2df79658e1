"""The declaration of a format that runs can be written in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelviz.core import Roof, Run


@dataclass(frozen=True, kw_only=True)
class Export:
    """A way to write a run. `encode` gives the bytes of the whole file; `suffix` is the file's ending, with its dot.

    `encode_with_roofs`: of a format that shows what is derived from the run, and from which no run is read again: the file with
    shares of these roofs, which were measured after the run. `label`: what the file contains, for a list of formats; without it
    the list shows the name. `holds_code`: whether the contents of the run's code are written.
    """

    name: str
    suffix: str
    media_type: str
    encode: Callable[[Run], bytes]
    encode_with_roofs: Callable[[Run, Sequence[Roof]], bytes] | None = None
    label: str = ""
    holds_code: bool = False
