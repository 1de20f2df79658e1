"""A module that tests run under a guard: it says what it found in its process, and ends as it is told."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

try:
    folder = str(Path.cwd())
except FileNotFoundError:
    folder = ""
connection = socket.socket(fileno=int(sys.argv[1]))
found = {
    "arguments": sys.argv[2:],
    "program": Path(sys.argv[0]).name,
    "name": __name__,
    "pid": os.getpid(),
    "json is loaded": "json" in sys.modules,
    "decimal is loaded": "decimal" in sys.modules,
    "descriptors": sorted(int(path.name) for path in Path("/proc/self/fd").iterdir() if path.exists()),
    "socket": connection.fileno(),
    "variable": os.environ.get("KERNELVIZ_TEST_VARIABLE"),
    "folder": folder,
    "child": subprocess.run(["true"], check=False).returncode,
    "signals": [signal.getsignal(one) == signal.SIG_DFL for one in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)],
    "leads its session": os.getsid(0) == os.getpid(),
    "searches for garbage": gc.isenabled(),
    "input": sys.stdin.read(),
}
connection.sendall(json.dumps(found).encode() + b"\n")
end = connection.recv(64).decode()
print("told to", end)  # noqa: T201
if end == "raise":
    raise RuntimeError("as it was told")
if end.startswith("signal"):
    os.kill(os.getpid(), int(end.split()[1]))
sys.exit(int(end) if end.isdigit() else None)
