"""What one call got and gave: facts of its tensors, and where its outputs are wrong."""
