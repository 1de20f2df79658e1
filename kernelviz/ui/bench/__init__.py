"""The panels of the page Bench: the form, live mode, results with charts and tables, samples, inspection."""
