"""Inspection of one call: facts about its input and output tensors, and the positions of wrong outputs."""
