"""Makes this folder importable: its tests share `cases`, `checking` and `gpu_report`."""
