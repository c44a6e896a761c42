"""``troth.testing.live``: the real host, client, driver and transfers under generated programs, schedules and faults.

A *stage* runs them over the ports in memory, by hand and in virtual time; *rules* say what can be done next on it; a source of *choices*
says what is done; and a *judge* compares, after every step, the bytes on the wire, the results of calls and the process table with what
cores of the model say, never with the runtime's own. ``target.Live`` is what ``troth fuzz --target runtime`` runs, ``machine.LiveMachine``
the same for Hypothesis.
"""
