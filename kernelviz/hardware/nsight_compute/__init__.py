"""Nsight Compute (`ncu`): the metrics that kernelviz asks for, the command that reads them, and its output. Imports no torch."""
