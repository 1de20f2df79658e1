"""The naive timing protocol: one pair of CUDA events around the first calls of a new process."""
