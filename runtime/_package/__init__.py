"""Troth: a formally modelled state-machine library with a verified session runtime."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
