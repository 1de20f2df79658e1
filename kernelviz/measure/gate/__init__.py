"""The correctness gate: outputs compared with the float64 reference, and what a wrong answer looks like."""
