"""Every bound of the wire that is not one of the protocol, named once, with its unit.

Those of the protocol (epochs, sequences, attempts) are in ``spec.limits``. What stands here bounds what a peer can make this process
hold or wait for, before and after it has shown who it is.
"""

from __future__ import annotations

# -- before a connection has shown who it is ---------------------------------------------------------------------------

MAX_UNAUTHENTICATED = 64
"""Connections at a time that have not shown yet who they are."""
MAX_CHALLENGE_BYTES = 512
"""Bytes that are exchanged with such a connection, in both directions together."""
CHALLENGE_S = 5.0
"""How long such a connection has."""
REFUSALS_LOGGED = 8
"""Refused connections that are logged one by one; then there is one line a period, with their number."""
REFUSALS_PERIOD_S = 10.0

# -- a connection ------------------------------------------------------------------------------------------------------

WRITE_STALL_S = 15.0
"""No byte of what is written was taken for this long: the connection is closed. Below ``transfer_stall_s`` and ``lease_timeout_s``, so
that a link that is stuck is dialled anew while the session lives."""
LAST_WORDS_S = 1.0
"""How long a connection is still read on which nothing can be written any more."""
READ_BYTES = 64 * 1024
"""The buffer that a connection reads into. A longer frame gets a larger one, while it comes in."""
DIRECT_BYTES = 16 * 1024
"""From this size on the bytes of a chunk are read straight to where they belong; fewer are cheaper to read with what follows."""
PATIENT_BYTES = 4 * 1024
"""How much is handed over at a time to a stream that took nothing at once; WRITE_STALL_S is counted for this much."""
SOCKET_BYTES = 1024 * 1024
"""What a socket is asked to hold in each direction. The system may give less."""

# -- what messages carry -----------------------------------------------------------------------------------------------

MAX_TEXT = 256
"""Characters of a name."""
MAX_SECRET_TEXT = 4096
"""Characters of a delegated credential."""
MAX_INSTANCE_TEXT = 64
"""Characters of a host's instance id."""
MAX_RANK = 2**16 - 1
MAX_PROTOCOL = 2**16 - 1
DIGEST_BYTES = 16
PROOF_BYTES = 32
INLINE_BYTES = 32 * 1024
"""The largest payload that rides in its message."""
MAX_MANIFEST_BYTES = 2 * 1024 * 1024
"""The description of a payload's arrays."""
MAX_PAYLOAD_BYTES = 64 * 2**30
"""What a payload may say that it has."""
MAX_LOG_TEXT = 8 * 1024
"""Characters of a logged text."""
MAX_LOG_ITEMS = 64
"""Items of a logged table, and of what is logged beside the value."""
MAX_LOG_INT = 2**63 - 1
MAX_SECONDS = 1e9
"""A duration in the terms of a session."""
MAX_REQUEST = 2**32 - 1
"""Numbers of the pulls of a data connection."""
CHUNK_BYTES = 1024 * 1024
"""The most bytes of a payload in one frame."""
