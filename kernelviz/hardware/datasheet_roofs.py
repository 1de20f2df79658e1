"""A data sheet's values as roofs, so that the arithmetic and charts of measured roofs can use them."""

from kernelviz.core import DataSheetRoof, Roof
from kernelviz.hardware.datasheet import datasheet


def ceilings(name: str) -> tuple[Roof, ...]:
    """Bandwidth of memory and peak rates of the GPU with that name; empty for one without a data sheet here.

    A sheet states one bandwidth for every mix, dense peaks, and nothing about the L2. These roofs have no date, because they
    were not measured; `how` names the sheet.

    >>> [round(r.bandwidth_bytes_per_s / 1e12, 1) for r in ceilings("NVIDIA H200") if r.name == "copy"], ceilings("EPYC")
    ([4.8], ())
    """
    sheet = datasheet(name)
    if sheet is None:
        return ()
    how = f"data sheet: {sheet.source}"
    memory = DataSheetRoof(name="copy", level="dram", bandwidth_bytes_per_s=sheet.bandwidth_bytes_per_s, how=how)
    peaks = [
        DataSheetRoof(
            name="matmul", precision=precision, rate_flop_per_s=peak.rate_flop_per_s, clock_hz=peak.at_clock_hz, how=how
        )
        for precision, peak in sheet.peaks.items()
    ]
    return (memory, *peaks)
