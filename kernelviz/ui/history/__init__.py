"""The panels of the page History."""
