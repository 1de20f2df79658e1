"""Send small responses at once: switch off Nagle's algorithm on the sockets of the server.

Streamlit binds its socket itself, with protocol number 0. asyncio sets TCP_NODELAY only on connections whose socket says
IPPROTO_TCP, which one accepted from such a listener does not, so a reused connection waits 40 ms for the
browser's delayed acknowledgement before the second part of each response (github.com/Kludex/uvicorn/issues/3149 has the same
cause). Measured on two cores: 44 ms per small file without this, 1 ms with it, and a page loads 60 files.
"""

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

OPEN_FILES = Path("/proc/self/fd")


def send_at_once() -> int:
    """Set TCP_NODELAY on every TCP socket on which this process listens; returns how many there are.

    On Linux a connection inherits the option from its listener. On other systems this finds and changes nothing.
    """
    count = 0
    for file in list(OPEN_FILES.iterdir()) if OPEN_FILES.is_dir() else ():
        number = int(file.name)
        # An error: the file was closed after it was listed. A duplicate descriptor, so that closing it does not close the socket.
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as listener:
                    count += _set(listener)
    return count


def _set(listener: socket.socket) -> bool:
    tcp = listener.family in (socket.AF_INET, socket.AF_INET6) and listener.type == socket.SOCK_STREAM
    if tcp and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return True
    return False
