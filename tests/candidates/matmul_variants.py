"""Variants of `matmul` that have not passed the GPU suite in every format yet, as a plug-in:

    kernelviz run matmul --with tests/candidates/matmul_variants.py --variants torch_eager,cuda_mma --size m=4096

The first three were right at 4096³ on an H200; the two for few rows have not run on a GPU. To finish: add them to the tuples of
their modules (`cuda_register_vec16` and `cuda_warp_tile` behind `cuda_register_tile`), and run the part `kernels` of the GPU
suite.
"""

from dataclasses import replace

from kernelviz.ops.matmul import variants_fp32, variants_mma, variants_skinny

cuda_register_vec16 = replace(variants_fp32.cuda_register_vec16, op="matmul")
cuda_warp_tile = replace(variants_fp32.cuda_warp_tile, op="matmul")
cuda_mma = replace(variants_mma.cuda_mma, op="matmul")
cuda_gemv = replace(variants_skinny.cuda_gemv, op="matmul")
cuda_skinny = replace(variants_skinny.cuda_skinny, op="matmul")
