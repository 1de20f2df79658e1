"""The command line `kernelviz`: the use cases of `kernelviz.bench` in a terminal."""

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0 all measured, 1 some failed, 2 bad usage or nothing could be measured."""
    try:
        first = "kernelviz.cli.commands" not in sys.modules
        if first:
            # What importing makes stays. Searching it for garbage, also at the end, takes a quarter of a short command's time.
            gc.disable()
        from kernelviz.cli.commands import invoke

        if first:
            gc.freeze()
            gc.enable()
        return invoke(arguments)
    except KeyboardInterrupt:
        # The exit code that a shell gives to a process ended by SIGINT. Importing the commands takes most of a second.
        return 130
