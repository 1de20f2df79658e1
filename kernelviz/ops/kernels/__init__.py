"""Code that kernels of several families share: NVRTC, 16-byte vectors, row tiles, torch.compile, autograd, CUDA headers."""
