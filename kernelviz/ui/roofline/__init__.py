"""The panels of the page Roofline."""
