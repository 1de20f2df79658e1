"""Charts and texts of a run over offsets, of which 0 has no logarithm."""

import sample_runs as samples

from kernelviz import plots
from kernelviz.core.run import Run
from kernelviz.formats import document
from kernelviz.metrics.sketch import sketch
from kernelviz.plots.sketch_image import thumbnail


def over_offsets() -> Run:
    sizes = [{"n": 2**26, "o": o} for o in (0, 4, 16)]
    return samples.run(op="copy", sizes=sizes, dtype="fp32", shares={"torch_eager": 0.8, "cuda_vec16": 0.9})


def test_a_chart_over_offsets_is_linear_and_has_0() -> None:
    for chart in (plots.bandwidth_by_size, plots.latency_by_size):
        figure = chart([over_offsets()])
        assert figure.layout.xaxis.type == "linear"
        assert figure.layout.xaxis.ticktext == ("0", "4", "16")
        assert any(tuple(trace.x) == (0, 4, 16) for trace in figure.data)


def test_a_thumbnail_over_offsets_begins_at_0() -> None:
    picture = thumbnail("copy", sketch(over_offsets()))
    assert ">o = 0</text>" in picture


def test_a_document_over_offsets_is_read_again() -> None:
    run = over_offsets()
    assert document.decode(document.encode(run)).plan == run.plan
