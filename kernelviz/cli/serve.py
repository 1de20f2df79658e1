"""`kernelviz serve`: the app, from a checkout or from the wheel, in whatever folder one stands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import kernelviz
from kernelviz.core.errors import DeviceError


def site() -> Path:
    """The folder that holds app.py: inside the package when it was installed from a wheel, else the checkout.

    Errors: DeviceError when neither has one.
    """
    package = Path(kernelviz.__file__).parent
    for folder in (package / "_site", package.parent):
        if (folder / "app.py").is_file():
            return folder
    raise DeviceError(f"this installation has no app.py beside {package}; install kernelviz again from its wheel")


def command(host: str, port: int) -> list[str]:
    """The command line that serves. Streamlit reads the settings in the .streamlit folder beside app.py.

    -P keeps the current folder off the module path: a file random.py that happens to lie there is not ours to import.
    """
    app = str(site() / "app.py")
    streamlit = [sys.executable, "-P", "-m", "streamlit", "run", app]
    arguments = [*streamlit, "--server.address", host, "--server.port", str(port)]
    # On every address, Streamlit would ask a service on the internet for this machine's own one, to print it.
    return [*arguments, "--browser.serverAddress", "localhost"] if host in ("0.0.0.0", "::") else arguments


def serve(host: str, port: int) -> None:
    """Become the server; does not return. Signals reach it directly, as there is no process between."""
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = command(host, port)
    os.execv(arguments[0], arguments)
