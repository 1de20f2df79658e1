"""`linear_relu`, `linear_gelu`, `linear_silu`: ops for the catalogue that have not passed the GPU suite yet.

On an H200 they passed but for torch.compile of gelu and silu in 16 bits (the bound counted one rounding before the function, and
inductor probably makes two). The wgmma kernel of matmul already has their epilogue (`bind_linear`). To finish: move the files
into `kernelviz/ops/matmul` and `_gelu` of `ops/activation/triton.py`, which families may not share there, into `ops/kernels`; add
`*LINEAR_OPS` to its OPS; run the part `kernels` of the GPU suite.
"""
