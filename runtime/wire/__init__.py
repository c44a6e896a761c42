"""Frames, message bodies, the mutual challenge, and connections."""
