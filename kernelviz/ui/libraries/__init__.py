"""The panels of the page Libraries."""
