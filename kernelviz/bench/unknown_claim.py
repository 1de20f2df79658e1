"""The error for a name that no published claim has."""

import difflib
from collections.abc import Iterable

from kernelviz.core import UnknownName

_MOST_ALIKE = 3


class UnknownClaim(UnknownName):
    """No claim has this name. The message has the names most like it, because all of them fill a screen.

    >>> print(UnknownClaim("fa3-forwad", ["fa3-forward", "fa3-backward", "marlin"]))
    no claim 'fa3-forwad'; nearest: fa3-forward, fa3-backward. `kernelviz claims` lists all 3
    """

    def __init__(self, claim_id: str, known: Iterable[str]) -> None:
        super().__init__("claim", claim_id, known)
        alike = difflib.get_close_matches(claim_id.lower(), self.known, n=_MOST_ALIKE, cutoff=0.5)
        nearest = f"; nearest: {', '.join(alike)}" if alike else ""
        self.args = (f"no claim {claim_id!r}{nearest}. `kernelviz claims` lists all {len(self.known)}",)
