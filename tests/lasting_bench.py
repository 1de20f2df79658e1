"""A bench with a real worker on this machine's processor for several commands, each of which closes its bench."""

from __future__ import annotations

from pathlib import Path

from kernelviz.bench import Bench
from kernelviz.hardware.cpu import cpu
from kernelviz.store import Store


class LastingBench(Bench):
    """A bench that stays open until `end`, as the bench of a server does."""

    def close(self) -> None:
        """Do nothing: the next command uses the same worker."""

    def end(self) -> None:
        super().close()


def lasting_bench(folder: Path) -> LastingBench:
    """A bench whose store and lock files are where a process finds them that has this folder's `home` and `runtime`."""
    home, runtime = folder / "home", folder / "runtime"
    for path in (home, runtime):
        path.mkdir(exist_ok=True)
    return LastingBench(Store.open(home), (cpu(),), lock_directory=runtime)
