"""`python -m kernelviz.measure.judge DEVICE SOCKET [EXCHANGE_S]`: started by the server, never by hand."""

import sys

from kernelviz.measure.judge.judge import serve

serve(sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:]))
