"""The command line `kernelviz`: the use cases of `kernelviz.bench` in a terminal."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0 all measured, 1 some failed, 2 bad usage or nothing could be measured."""
    try:
        from kernelviz.cli.commands import invoke

        return invoke(arguments)
    except KeyboardInterrupt:
        # The exit code that a shell gives to a process ended by SIGINT. Importing the commands takes 0.3 s.
        return 130
