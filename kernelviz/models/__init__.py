"""Published transformer models as facts: the sizes of a layer, and the layer as a list of ops. Nothing here imports torch."""
