"""`python -m kernelviz.worker SOCKET [JUDGE]`: started by the guard, never by hand."""

import sys

from kernelviz.worker.child import serve

serve(*map(int, sys.argv[1:]))
