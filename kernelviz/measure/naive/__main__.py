"""`python -m kernelviz.measure.naive ANSWER`: started by the worker, never by hand. The request comes on stdin as JSON."""

import sys
from pathlib import Path

import msgspec

from kernelviz.core.errors import one_line
from kernelviz.measure.naive.messages import NaiveAnswer, NaiveRequest


def main() -> None:
    """Write the answer to the file that the command names."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=NaiveRequest)
    try:
        from kernelviz.measure.naive.calls import naive_timing  # imports torch

        answer = NaiveAnswer(timing=naive_timing(request))
    except Exception as error:
        answer = NaiveAnswer(error=one_line(error))
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(answer))


main()
