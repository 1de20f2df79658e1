"""The page Code: the code of a kernel, and how that of two kernels differs."""
