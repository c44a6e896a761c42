"""Worlds as TLA+ modules: a second checker, TLC, can then count the states of the same closed form.

What is exported are the tables: what every component does in every local state, as finite functions, and how actions work through
them. So TLC checks the composition and the search; that the tables are what the cores do is for other tests to say.
"""

from __future__ import annotations

from troth.models.tla.module import Exported, Refinement, exported

__all__ = ["Exported", "Refinement", "exported"]
