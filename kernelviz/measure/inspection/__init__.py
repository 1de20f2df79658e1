"""Inspection of one call: facts of its input and output tensors, and the positions of wrong outputs."""
