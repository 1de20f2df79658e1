"""The words of kernelviz: problems, plans, results, runs, and the errors that name what is wrong with them.

Nothing here imports torch, triton or a database; every other room may import this one.
"""
