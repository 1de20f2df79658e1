"""`kernelviz serve`: start the web app, from a checkout or from an installed wheel, in any current folder."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import kernelviz
from kernelviz.core import DeviceError


def app_folder() -> Path:
    """The folder with app.py: inside the package if it was installed from a wheel, otherwise the checkout.

    Errors: DeviceError if neither has one.
    """
    package = Path(kernelviz.__file__).parent
    for folder in (package / "_site", package.parent):
        if (folder / "app.py").is_file():
            return folder
    raise DeviceError(f"this installation has no app.py next to {package}; install kernelviz again from its wheel")


def command(host: str, port: int) -> list[str]:
    """The command line of the server. Streamlit reads the settings in the .streamlit folder next to app.py.

    -P keeps the current folder off the module path, so that a file random.py there is not imported by accident.
    """
    streamlit = [sys.executable, "-P", "-m", "streamlit", "run", str(app_folder() / "app.py")]
    arguments = [*streamlit, "--server.address", host, "--server.port", str(port)]
    # The address that Streamlit prints is 127.0.0.1 (.streamlit/config.toml), which is also right if it listens on every address.
    return arguments if host in ("127.0.0.1", "0.0.0.0", "::") else [*arguments, "--browser.serverAddress", host]


def serve(
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on. Other machines can reach 0.0.0.0; there is no login."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="PORT", help="TCP port to listen on.")] = 8501,
) -> None:
    """Start the web app. Stop it with Ctrl-C.

    It listens on this machine only. Before you let others reach it, read docs/deploy.md: the app has no login.
    """
    # The server replaces this process, so that signals reach it directly.
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = command(host, port)
    os.execv(arguments[0], arguments)
