"""Runs as files: the native document, and the formats of others. One file a format."""

from kernelviz.formats.document import MAX_BYTES, decode, digest, encode

__all__ = ["MAX_BYTES", "decode", "digest", "encode"]
