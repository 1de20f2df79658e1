"""The error for a run of a workload that is not here."""

from typing import ClassVar

from kernelviz.core.errors import UnknownRun


class UnknownWorkloadRun(UnknownRun):
    """No run of a workload of that id in this store."""

    subject: ClassVar[str] = "run of a workload"
    listing: ClassVar[str] = (
        "`kernelviz workloads runs` lists the runs of this machine, and with --shipped those that came with kernelviz"
    )
    export: ClassVar[str] = "kernelviz workloads export RUN -o FILE"
