"""Read a request from stdin and write the answer, or the error, to stdout."""

import os
import sys

import msgspec

from kernelviz.core.errors import UsageError
from kernelviz.measure.precompiled.compilation import answer
from kernelviz.measure.precompiled.messages import Request

if __name__ == "__main__":
    out = os.dup(1)
    os.dup2(2, 1)  # what compilers print must not be in the answer
    try:
        content = msgspec.json.encode(answer(msgspec.json.decode(sys.stdin.buffer.read(), type=Request)))
    except UsageError as error:
        sys.stderr.write(str(error))
        sys.exit(2)
    with os.fdopen(out, "wb") as file:
        file.write(content)
