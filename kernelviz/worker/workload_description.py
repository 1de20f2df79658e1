"""The declarations of a user's own workloads, read by a process of its own, because it runs the code of their files."""

import sys
from collections.abc import Sequence

import msgspec

from kernelviz.core import BadField
from kernelviz.core.workload import Workload
from kernelviz.worker.guarded_command import run_guarded

MOST_S = 60.0
_BEGIN = "kernelviz-workloads:"
_DECODER = msgspec.json.Decoder(tuple[Workload, ...])


def describe(paths: Sequence[str]) -> tuple[Workload, ...]:
    """What the files at `paths` declare. Errors: BadField with the path and what is wrong."""
    if not paths:
        return ()
    command = [sys.executable, "-P", "-m", "kernelviz.worker.workload_description", *paths]
    end = run_guarded(command, most_s=MOST_S, stop=lambda: False)
    lines = [line for line in end.printed.splitlines() if line.startswith(_BEGIN)]
    if not lines:
        said = end.printed.strip().splitlines()[-1:] or [f"it ended with exit code {end.exit_code}"]
        raise BadField("plug-in", ", ".join(paths), f"it cannot be read: {said[0][:500]}")
    return _DECODER.decode(lines[-1].removeprefix(_BEGIN))


def main(paths: Sequence[str]) -> None:
    """Print the declarations of the files, one line."""
    from kernelviz.workloads.catalog import with_plugins, workloads

    own = [of.workload for name, of in with_plugins(paths).items() if workloads().get(name) is not of]
    sys.stdout.write(f"\n{_BEGIN}{msgspec.json.encode(own).decode()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
