"""The workloads that can be measured: one module or folder for each, which declares it in `WORKLOADS`."""
