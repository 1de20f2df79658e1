"""The panels of the page Method."""
