"""Time on the device and on the host: timers, tracers, captured calls, interleaved rounds, secondary timings."""
