"""Limits of CUDA on the grid of a kernel."""

LARGEST_GRID_Y = LARGEST_GRID_Z = 65535
"""Blocks along y, and along z."""
