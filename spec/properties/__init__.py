"""The numbered properties: what users may rely on.

A property has one name everywhere. ``P08`` is the same statement in a test, a world, a trace and a page of the docs. Here are the
statements, by topic; the predicates live with whatever evaluates them. ``LEFT_OUT`` lists what was stated of the reference protocol
and has no counterpart here.
"""

from __future__ import annotations

from collections.abc import Mapping

from troth.spec.properties.ends import ENDS
from troth.spec.properties.left_out import LEFT_OUT
from troth.spec.properties.liveness import LIVENESS
from troth.spec.properties.model import By, LeftOut, Property, Role, catalogue
from troth.spec.properties.results import RESULTS
from troth.spec.properties.sessions import SESSIONS
from troth.spec.properties.tasks import TASKS

PROPERTIES: Mapping[str, Property] = catalogue([SESSIONS, TASKS, RESULTS, ENDS, LIVENESS])
"""Every numbered property, by id."""

__all__ = ["LEFT_OUT", "PROPERTIES", "By", "LeftOut", "Property", "Role"]
