"""Tunings: their configurations, what parameters are worth, and how the choice for one shape does at another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, wait_for_run
from kernelviz.api.report import Report, frame
from kernelviz.bench import transfer as use_case
from kernelviz.core import BadField, Run
from kernelviz.core.configuration import Value
from kernelviz.metrics.configurations import ConfigurationSpace, configuration_space
from kernelviz.metrics.parameter_effects import ParameterEffects, parameter_effects
from kernelviz.metrics.transfer import Transfer
from kernelviz.text.configurations import configuration_insight, configuration_record, record
from kernelviz.text.transfer import format_cell, transfer_insight, transfer_record

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Configurations:
    """The configurations of a tuning. `space`: each with its outcome. `effects`: what each parameter is worth. The charts of
    `kernelviz.plots` take `run`, for example `kv.plots.time_by_parameter(configurations.run, "block")`."""

    run: Run
    space: ConfigurationSpace
    effects: ParameterEffects

    @property
    def best(self) -> dict[str, Value] | None:
        """The values of the best configuration; None if none has a time."""
        return None if self.space.best is None else dict(self.space.best.values)

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz tunings show RUN --json` prints."""
        return record(self.space, self.effects)

    def to_frame(self) -> pd.DataFrame:
        """One row for each configuration, in the order of the search: values, state, time in seconds, registers, failure."""
        return frame(configuration_record(c) for c in self.space.configurations)

    def __repr__(self) -> str:
        return f"<kernelviz configurations of {self.space.run_id}: {configuration_insight(self.space, self.effects)}>"


@dataclass(frozen=True, repr=False)
class TransferMatrix:
    """How the configuration that was tuned for each shape does at the others. `matrix`: the cells, with intervals."""

    matrix: Transfer

    @property
    def record(self) -> dict[str, Any]:
        """The record that `kernelviz tunings transfer OP VARIANT --json` prints."""
        return transfer_record(self.matrix)

    def to_frame(self) -> pd.DataFrame:
        """A row for the shape that a configuration was tuned for, a column for the shape at which it was measured: its time over
        that of the shape's own configuration; NaN where nobody measured it or where it has no time."""
        import pandas

        keys = [t.problem.key for t in self.matrix.tunings]
        ratios = [[c.ratio.estimate if c.ratio else None for c in row] for row in self.matrix.cells]
        return pandas.DataFrame(ratios, index=keys, columns=keys, dtype="float64")

    def __repr__(self) -> str:
        cells = "; ".join(" ".join(str(format_cell(c)) for c in row) for row in self.matrix.cells)
        return f"<kernelviz transfer: {transfer_insight(self.matrix)} [{cells}]>"


def configurations(run: str | Run | Report) -> Configurations:
    """The configurations of a tuning, also of an imported one. `run`: its id, a run or a report.

    Errors: UnknownRun; BadField for a run that is no tuning.
    """
    known = use_cases.current().load(run) if isinstance(run, str) else run
    space = configuration_space(known)
    return Configurations(run=known, space=space, effects=parameter_effects(space))


def transfer(op: str, variant: str, *, dtype: str | None = None, measure: bool = False) -> TransferMatrix:
    """How the configurations that were tuned for different shapes do at the others, over the stored tunings of a variant.

    measure: first measure the pairs that nobody has measured, and wait for them. Errors: BadField if no tuning is stored, or if
    the device of the tunings is not here.
    """
    bench = use_cases.current()
    chosen = [s.tuning for s in bench.tunings.find(op, variant=variant) if dtype in (None, s.tuning.problem.dtype)]
    if not chosen:
        raise BadField("variant", variant, "no tuning of it is stored here; `kernelviz.tune` makes one")
    newest = max(chosen, key=lambda t: t.created_at)
    matrix = use_case.of_tuning(bench, newest)
    if measure:
        device_id = next((d.id for d in bench.devices() if d.uuid == newest.device_uuid), None)
        if device_id is None:
            raise BadField("measure", newest.device, "the tunings are of a device that is not here")
        for shape in dict.fromkeys(b for _, b in matrix.missing):
            wait_for_run(bench, use_case.measure(bench, matrix, shape, device_id, owner=owner()))
        matrix = use_case.of_tuning(bench, newest)
    return TransferMatrix(matrix)
