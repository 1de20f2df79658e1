"""The panels of the page Gallery."""
