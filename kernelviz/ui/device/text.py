"""What the page Device says, as Markdown: one place for each sentence. The terminal says some of them too."""

from __future__ import annotations

SHAPES = "Shaded: something was being measured."
BUSY = (
    "Busy is the share of the driver's last sampling period in which any kernel ran, or memory was read or written (NVML). It is "
    "not how well the device was used: one thread of one kernel counts like a full device."
)
LOAD = "Load is the share of the last second in which a core was not idle (psutil); the memory is the whole machine's."
PCIE = "PCIe counters take NVML 20 ms each, so they are not asked while anything is measured."
SAMPLED = (
    "One sample a second, for all open pages together; nothing is asked when nobody looked for three minutes and nothing is "
    "measured."
)
ALERTS = (
    "Utilisation is the mean over the last 30 s while a run is going; growth is over ten minutes, from the least of the first "
    "minute to the least of the last one."
)
SHARES = (
    "**Of the sheet**: measured over stated. **At this clock**: over the stated rate at the clock that the measurement ran at; "
    "where it is much higher, power or heat held the clock down, not the kernel. Sheets state dense rates, without sparsity."
)
NO_SHEET = (
    "No data sheet of a GPU with exactly this name is in our table, so nothing is promised for it: no guess is made."
)
NO_SHEET_CPU = "Data sheets are kept for NVIDIA GPUs only; a processor's measured roofs stand alone."
NOT_MEASURED = "The roofs of this device were not measured yet."
NOT_CALIBRATED = f"{NOT_MEASURED} **Calibrate** measures them; nothing else is measured meanwhile."
CALIBRATE_HELP = (
    "Streams of bytes, matrix products, multiply-adds, launches, transfers. Also: kernelviz device --calibrate"
)
ONE_CALIBRATION = "There is one calibration only. How roofs move shows with the second one."
MOVES = (
    "Change is against the chosen earlier calibration. **≈** where the two 95 % intervals touch: that is no change one can tell. "
    "A launch's time is better when it falls."
)
TIMES_GPU = (
    "A point a kernel, by the device's own stamps (median over the samples); grey bar: the middle half of a run's."
)
TIMES_CPU = (
    "A point a case: one call, caches cold, by the host's clock (a processor traces no kernels); grey bar: the middle half of a "
    "run's."
)
