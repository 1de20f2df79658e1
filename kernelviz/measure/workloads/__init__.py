"""The processes that measure workloads: that of a runner, and the rank processes that it starts."""
