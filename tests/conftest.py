"""Settings for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A test either fails or does not: the same examples in every run, and no failure because the machine is busy. Whoever looks for new
# examples runs with --hypothesis-profile=search.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
