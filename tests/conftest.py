"""Settings for every test."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A test either fails or does not: the same examples in every run, and no failure because the machine is busy. Whoever looks for new
# examples runs with --hypothesis-profile=search.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# A shell that starts the tests in the background has them ignore interrupts, and whatever they start inherits that: then a test that
# interrupts what it has started waits for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
