"""The catalog: the types of ops, variants and tensors, how families and plug-ins are discovered, and source digests."""
