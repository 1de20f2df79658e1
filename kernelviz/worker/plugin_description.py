"""What plug-ins hold, asked of a process of its own: the server never imports them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kernelviz.core.errors import BadField
from kernelviz.ops import catalogue, with_plugins
from kernelviz.worker.process import WorkerDied, WorkerProcess
from kernelviz.worker.protocol import Describe, Described, TaskFailed, VariantFacts

_NAMED, _REFUSED = "plug-in: ", " cannot be used; "
"""How a BadField of a plug-in reads."""
DESCRIBE_S = 120.0
"""Importing a plug-in may import torch, which takes seconds on a cold disk."""


def describe(plugins: Sequence[str]) -> tuple[VariantFacts, ...]:
    """The variants that these files and the installed entry points add to ops of the catalogue.

    Starts a process and waits for it. Errors: BadField with the path and what is wrong.
    """
    process = WorkerProcess()
    until = time.monotonic() + DESCRIBE_S
    where = ", ".join(plugins) or "an installed entry point"
    try:
        process.send(Describe(task=0, plugins=tuple(plugins)))
        while (left := until - time.monotonic()) > 0:
            reply = process.receive(left)
            if isinstance(reply, Described):
                return reply.variants
            if isinstance(reply, TaskFailed):
                raise BadField("plug-in", *_said_once(where, reply.message))
        raise BadField("plug-in", where, f"importing it took more than {DESCRIBE_S:.0f} s")
    except WorkerDied:
        raise BadField("plug-in", where, f"importing it: {process.fate()}") from None
    finally:
        process.end()


def _said_once(where: str, message: str) -> tuple[str, str]:
    """The plug-in and what is wrong with it, from what the process said, which may have named the plug-in already.

    >>> _said_once("a.py, b.py", "plug-in: 'b.py' cannot be used; it holds no variant")
    ('b.py', 'it holds no variant')
    >>> _said_once("a.py", "ValueError: no good")
    ('a.py', 'ValueError: no good')
    """
    begun, cut, remedy = message.partition(_REFUSED)
    named = begun.removeprefix(_NAMED)
    return (named.strip("'\""), remedy) if cut and named != begun else (where, message)


def variants_of(plugins: Sequence[str]) -> tuple[VariantFacts, ...]:
    """In the worker: import the plug-ins, and say what they add to the ops of the catalogue."""
    own = catalogue()
    found: list[VariantFacts] = []
    for name, op in with_plugins(plugins).items():
        known = {v.name for v in own[name].variants} if name in own else set()
        found += [
            VariantFacts(
                op=name,
                name=v.name,
                backend=v.backend,
                summary=v.summary,
                digest=v.source_digest(),
                needs=v.needs,
                dtypes=v.dtypes,
                computes=v.computes,
                directions=v.directions,
                mutates=v.mutates,
                late=v.late,
                only_when_named=v.only_when_named,
                space=dict(v.space),
                backward_digest=v.of_backward().source_digest() if v.backward else None,
            )
            for v in op.variants
            if name in own and v.name not in known
        ]
    return tuple(found)
