"""`python -m kernelviz.worker SOCKET`: started by the guard, never by hand."""

import sys

from kernelviz.worker.child import serve

serve(int(sys.argv[1]))
