"""Text packed into a page, and the drawing library: Plotly's own script, as the installed package has it.

The whole script of 4.8 MB takes 2.0 MB packed (gzip, base64) and always fits the figures, which the same package made; a
smaller build of plain text takes 1.1 to 1.4 MB, would have to be kept beside the code, and would be of another version.
"""

import gzip
import hashlib
from base64 import b64encode
from functools import lru_cache

from plotly.offline import get_plotlyjs


def packed(text: str, level: int = 6) -> str:
    """The text as base64 of gzip: letters, digits, ``+``, ``/`` and ``=``, so that no element can be closed by it."""
    return b64encode(gzip.compress(text.encode(), compresslevel=level, mtime=0)).decode()


def allowed(script: str) -> str:
    """How a content security policy names a script that may run.

    >>> allowed("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def plotly() -> tuple[str, str]:
    """Plotly's script packed, and how a policy names it. Packing takes 0.4 s, so it is done once a process."""
    script = get_plotlyjs()
    return packed(script, 9), allowed(script)
