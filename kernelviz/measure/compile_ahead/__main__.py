"""The entry of the dispatcher's process: see `dispatcher`."""

import sys

from kernelviz.measure.compile_ahead.dispatcher import main

main(int(sys.argv[1]))
