"""Kernels that another compiler compiled, in place of those that the compiler of this process would make.

`kernelviz compile` compiles the Triton kernels of an op for an architecture, without a GPU, and writes a plug-in file. On the
machine with the GPU the plug-in declares each variant a second time, with the machine code of the file. Both are measured in the
same rounds, so that two versions of Triton, or two versions of ptxas, are compared like any two variants.
"""
