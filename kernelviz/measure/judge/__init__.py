"""The judge: a process that runs no variant, owns the inputs and outputs of a case, and checks what a worker says about it."""
