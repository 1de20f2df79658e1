"""The panels of the page Own and library."""
