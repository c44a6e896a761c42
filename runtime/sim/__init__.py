"""The ports in memory, with faults."""
