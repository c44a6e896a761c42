"""Machines that more than one party has, and what their declarations have in common."""
