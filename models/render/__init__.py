"""Counterexamples for people and programs: text, mermaid, JSON, and a page with drawings."""
