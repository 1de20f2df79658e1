"""What all tests run under."""

import os

# A test process a core, and each with torch's threads on all of them, spend two thirds of their time waiting for each other's.
os.environ.setdefault("OMP_NUM_THREADS", "1")
