"""`python -m kernelviz`, where the script folder is not on the path."""

import sys

from kernelviz.cli import main

if __name__ == "__main__":
    sys.argv[0] = "kernelviz"  # who waits for the device reads it
    raise SystemExit(main())
