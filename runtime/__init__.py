"""The session runtime: performs what the cores decide, on trio.

Rule 1.  The runtime performs; it does not decide. The driver is the only caller of ``handle``.
Rule 2.  It touches the outside only through ``ports``.
"""
