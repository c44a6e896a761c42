"""The vector engine: the same search as ``scalar``, on packed states, a few ten thousand at a time, with numpy."""

from __future__ import annotations

from troth.models.vector.driver import explore
from troth.models.vector.graph import StateGraph, graph

__all__ = ["StateGraph", "explore", "graph"]
