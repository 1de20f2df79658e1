"""The panels of the page Model."""
