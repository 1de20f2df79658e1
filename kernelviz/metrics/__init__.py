"""Pure arithmetic on results: rates, roofs, statistics, verdicts. No torch, no I/O, no rounding, and no text (see `text`)."""
