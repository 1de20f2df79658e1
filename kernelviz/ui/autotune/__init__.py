"""The page Autotune: its form, the progress of a tuning, and what its configurations say."""
