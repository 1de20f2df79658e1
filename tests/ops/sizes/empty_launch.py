"""Sizes of `empty_launch`."""

ODD = {"empty_launch": ({"k": 1}, {"k": 7}, {"k": 17}, {"k": 67})}
LARGE = {"empty_launch": ({"k": 1024},)}
COMPILED = {"empty_launch": ({"k": 3},)}
