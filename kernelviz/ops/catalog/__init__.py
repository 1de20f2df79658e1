"""The catalog: what an op, a variant and an axis are, how families and plug-ins are found, and what a variant requires."""
