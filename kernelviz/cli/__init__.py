"""The command line `kernelviz`: the use cases of `kernelviz.bench` in a terminal."""

import gc
import importlib
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0 all measured, 1 some failed, 2 bad usage or nothing could be measured."""
    try:
        if "kernelviz.cli.commands" not in sys.modules:
            # What importing makes stays. Searching it for garbage, also at the end, takes a quarter of a short command's time.
            gc.disable()
            importlib.import_module("kernelviz.cli.commands")
            gc.freeze()
            gc.enable()
        from kernelviz.cli.commands import invoke

        return invoke(arguments)
    except KeyboardInterrupt:
        # The exit code that a shell gives to a process ended by SIGINT. Importing the commands takes most of a second.
        return 130
