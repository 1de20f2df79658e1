"""Layers of published models for scripts and notebooks: op by op, as one module, and in a traffic mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz import bench as use_cases
from kernelviz.api.measurement import owner, wait_for_run
from kernelviz.api.report import frame
from kernelviz.bench import model as use_case
from kernelviz.bench import model_report, model_runs
from kernelviz.bench.model import Layer
from kernelviz.bench.model_mix import DECODE_BATCH, TrafficMix, traffic_mix
from kernelviz.metrics.layer_truth import kernel_rows
from kernelviz.models.presets import preset_named
from kernelviz.plots.model import time_by_part
from kernelviz.tables.model import KERNEL_COLUMNS, part_record
from kernelviz.text.model import describe_layer

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class LayerReport:
    """A layer on a device, with methods for use in Python. `layer`: everything that is known of it."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def to_frame(self) -> pd.DataFrame:
        """A row for each part: its problem, its times with intervals in SI base units, and what is missing."""
        return frame([part_record(part) for part in self.layer.parts])

    def kernels(self) -> pd.DataFrame:
        """A row for each kernel of the layer as one module: its part, its time and its share; empty if it was not measured."""
        rows = kernel_rows(self.layer.truth)
        return frame([{column.name: column.read(row) for column in KERNEL_COLUMNS} for row in rows])

    @property
    def insight(self) -> str:
        """One sentence: what torch.compile and the best variants are worth, and the largest part."""
        return str(describe_layer(self.layer.parts, self.layer.comparable))

    def chart(self) -> go.Figure:
        """The time of the parts as stacked bars."""
        on_host = self.layer.source.device.kind == "cpu"
        return time_by_part(self.layer.parts, self.layer.truth, on_host=on_host)

    def markdown(self) -> str:
        """The document of the layer."""
        return model_report.markdown(self.layer)

    def record(self) -> dict[str, object]:
        """The layer as JSON has it."""
        return model_report.record(self.layer)

    def mix(self, *, batch: int = DECODE_BATCH, context: int = 8192, prefill: int = 4096) -> TrafficMix:
        """Prefill of one sequence of `prefill` tokens and decoding of `batch` sequences of `context` tokens, on the same device.
        Errors: BadField."""
        bench, layer = use_cases.current(), self.layer
        dtype = layer.call.dtype
        return traffic_mix(bench, layer.preset, dtype, layer.source, batch=batch, context=context, prefill=prefill)

    def __repr__(self) -> str:
        call = self.layer.call
        return f"<LayerReport {call.preset}, {call.phase}, batch {call.batch}, context {call.context}, {self.layer.source.name}>"


def model(
    preset: str,
    *,
    phase: str = "prefill",
    batch: int | None = None,
    context: int | None = None,
    dtype: str = "bf16",
    device: str | None = None,
    measure: bool = False,
    truth: bool = False,
) -> LayerReport:
    """A transformer layer of a published model op by op, from stored results.

    measure: first measure the parts that have no result, and wait. truth: first measure the layer as one torch module, eager and
    compiled. device: of this machine, or the name of one with recorded results. Errors: UnknownName, BadField, StoreError.
    """
    bench = use_cases.current()
    known = preset_named(preset)
    decoding = phase == "decode"
    start = min(8192 if decoding else 4096, known.most_context)
    call = use_case.call_of(known.name, phase, batch or (DECODE_BATCH if decoding else 1), context or start, dtype)[1]
    source = use_case.source_named(bench, device)
    layer = use_case.opened(bench, known, call, source)
    if measure:
        for run_id in model_runs.start_all(bench, layer, owner=owner()):
            wait_for_run(bench, run_id)
    if truth:
        run_id = model_runs.start_truth(bench, layer, owner=owner())
        for _ in bench.workloads.follow(run_id):
            pass
    return LayerReport(use_case.opened(bench, known, call, source))
