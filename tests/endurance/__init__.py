"""Whole jobs whose processes are killed, stopped and interrupted, over and over. Minutes, so they are run by hand: ``-m slow``."""
