"""The sentences of the page Device, as Markdown."""

SHADED = "Shaded: a measurement was running."
BUSY = (
    "**SMs busy** is the share of the driver's last sampling period in which at least one kernel ran, and **memory** the share "
    "in which memory was read or written (NVML). One thread counts as much as a full GPU, so this is not efficiency."
)
LOAD = (
    "**Load** is the share of the last second in which a core was not idle (psutil). **Memory in use** is that of the whole "
    "machine."
)
PCIE = "**PCIe** counters are not read during a measurement, because each reading takes NVML 20 ms."
SAMPLED = (
    "One sample a second is shared by all open pages. Sampling stops when no page was open for three minutes and nothing is "
    "measured."
)
ALERTS = (
    "**Low utilisation** uses the mean of the last 30 s and alerts only during a run. **Memory growth** is the minimum of the "
    "last minute minus the minimum of the first minute, over ten minutes."
)
LOW_UTILISATION_HELP = "An alert appears if the mean utilisation of the last 30 s of a run is below this."
MEMORY_GROWTH_HELP = "An alert appears if the memory in use grew by more than this within ten minutes."
SHARES = (
    "**Of data sheet**: the measured value as a share of the data sheet's. **At this clock**: the same, with the data sheet's "
    "value scaled to the clock of the measurement; if it is much higher, power or temperature limited the clock. Data-sheet "
    "rates are dense, without sparsity."
)
NO_SHEET = (
    "kernelviz has no data sheet of a GPU with exactly this name, so the measured roofs are shown without a comparison."
)
NO_SHEET_CPU = (
    "kernelviz has data sheets of NVIDIA GPUs only, so the measured roofs of a CPU are shown without a comparison."
)
NOT_MEASURED = "The roofs of this device were not measured yet."
NOT_CALIBRATED = f"{NOT_MEASURED} Press **Calibrate** to measure them; other measurements wait until it is done."
CALIBRATE_HELP = (
    "Measures bandwidth, arithmetic rates, kernel launches and transfers. In a terminal: kernelviz device --calibrate"
)
ONE_CALIBRATION = (
    "There is only one calibration. Calibrate again, for example after a driver update, to see what changed."
)
MOVES = (
    "Each roof is compared with the chosen earlier calibration. **≈**: the two 95 % intervals overlap, so no change can be "
    "stated. For kernel launches, a lower time is better."
)
TIMES_GPU = "Each point is a kernel: the median of its GPU timestamps. Grey bar: the middle half of a run's kernels."
TIMES_CPU = (
    "Each point is a case: one call with flushed caches, timed by the host clock, because CPU kernels cannot be traced. Grey "
    "bar: the middle half of a run's cases."
)
