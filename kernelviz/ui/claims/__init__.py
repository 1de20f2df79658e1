"""The panels of the page Claims."""
