"""Tests of the guardian, its client, the bootstrap file and the logs. ``alive`` and ``play`` are for others to use as well."""
