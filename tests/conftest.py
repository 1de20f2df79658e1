"""Puts this folder on the path, so that tests share `sample_runs` and `rehearsed_bench`."""
