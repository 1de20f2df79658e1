"""What kernels of several families share: NVRTC, 16-byte vectors, row tiles, launch shapes, torch.compile, autograd, headers."""
