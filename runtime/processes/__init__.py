"""Processes: the guardian, its client, the bootstrap file, and the logs of trainers."""
