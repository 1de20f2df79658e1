"""Compilation ahead of measuring, in processes that never touch a GPU."""
