"""Payloads: trees of arrays as bytes, and their transfer."""

from __future__ import annotations

from troth.runtime.payloads.arrays import INLINE_LIMIT, MAX_PAYLOAD_BYTES, Landing, Payload, allocate, decode, encode, encode_async
from troth.runtime.payloads.content import DIGEST_BYTES, digest_of
from troth.runtime.payloads.link import DataLink
from troth.runtime.payloads.pulls import Carried

__all__ = [
    "DIGEST_BYTES",
    "INLINE_LIMIT",
    "MAX_PAYLOAD_BYTES",
    "Carried",
    "DataLink",
    "Landing",
    "Payload",
    "allocate",
    "decode",
    "digest_of",
    "encode",
    "encode_async",
]
