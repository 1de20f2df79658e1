"""A measuring session: one device, its state, and the problems that are bound, checked and measured on it."""
