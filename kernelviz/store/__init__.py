"""The database: runs as a header and one row a result, and the roofs of devices."""

from kernelviz.store.database import DamagedRow, NotStored, StoreError
from kernelviz.store.process_presence import Presence
from kernelviz.store.run_rows import RunRow
from kernelviz.store.store import Store, home
from kernelviz.store.workloads import WorkloadRow

__all__ = ["DamagedRow", "NotStored", "Presence", "RunRow", "Store", "StoreError", "WorkloadRow", "home"]
