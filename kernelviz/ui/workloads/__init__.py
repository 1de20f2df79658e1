"""The panels of the page Workloads."""
