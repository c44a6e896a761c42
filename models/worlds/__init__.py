"""Worlds that come with Troth."""
