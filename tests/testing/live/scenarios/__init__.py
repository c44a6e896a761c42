"""Short plays on the live stage, for rows that walks come to seldom or never.

Each names the rows that it is for, and must fire them: on the real runtime, before the same judge, with everything compared.
"""
