"""The error for a run of a workload that is not here."""

from kernelviz.core.errors import UnknownRun


class UnknownWorkloadRun(UnknownRun):
    """No run of a workload of that id in this store."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.args = (
            f"no run of a workload {run_id!r} here; runs live in the database of the machine that measured them "
            "(`kernelviz device` names its path). Ask its owner for the document (`kernelviz workloads export RUN -o FILE`).",
        )
