"""Facts about compiled kernels, read from their cubins without a GPU.

The entry points are `facts.facts_of` and `disassembly.disassembly`. The package runs `nvdisasm`, and imports only
`kernelviz.core` and the standard library.
"""
