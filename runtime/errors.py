"""What can go wrong in the runtime, as exceptions. Each names the offending thing and, where there is one, the fix.

``Misuse`` is the local user's, ``RuntimeFault`` ours; what the peer may not send closes its link and is logged. The three are never mixed.
"""

from __future__ import annotations


class TrothError(Exception):
    """Base of everything that the runtime raises on purpose."""


class Misuse(TrothError):
    """A call that may not be made now. Nothing was changed."""


class RuntimeFault(TrothError):
    """The runtime itself is at fault: it reported to a core what cannot have happened."""


# -- links -------------------------------------------------------------------------------------------------------------


class LinkDown(TrothError):
    """A connection is not there, or broke."""


class EndpointRefused(TrothError):
    """Where it was asked to listen or to dial is no place for that; says why. Trying again does not help."""


class FrameError(TrothError):
    """Bytes that are not a frame of this protocol."""


class ChallengeFailed(TrothError):
    """A connection that did not prove what it claimed to be. Never says what the proof should have been."""


class HungUp(ChallengeFailed):
    """The other side went away before the challenge was over."""


class SessionOver(ChallengeFailed):
    """A data connection of a session that is over, or that is just ending: while its trainer still dials, or as it lets go of its dial."""


# -- payloads ----------------------------------------------------------------------------------------------------------


class PayloadRefused(TrothError):
    """A payload that cannot be carried faithfully; says where in it, by key path. Nothing was sent."""


class PayloadBroken(TrothError):
    """Bytes that are not the payload that their manifest describes."""


# -- processes and files -----------------------------------------------------------------------------------------------


class BootstrapError(TrothError):
    """A bootstrap file that cannot be used."""


class SpawnFailed(TrothError):
    """A process could not be started."""


# -- outcomes of calls -------------------------------------------------------------------------------------------------


class SessionError(TrothError):
    """A call ended otherwise than its caller wanted, because of the session or its peer."""


class JoinFailed(SessionError):
    """``init()`` did not get a session: nobody answered in time, or the host refused. It may be tried again."""


class SessionAborted(SessionError):
    """The session was aborted."""


class SessionClosed(SessionError):
    """The session is over."""


class SessionLost(SessionError):
    """The peer is gone, or was silent for so long that it counts as gone."""


class CallCancelled(SessionError):
    """The call was given up, by its caller or because its task was cancelled."""


class TaskRefused(SessionError):
    """The trainer will not run the task."""


class TaskUndelivered(SessionError):
    """The task did not reach the trainer in time."""


class TaskTimeout(SessionError):
    """The task was delivered, but its result did not come in time."""


class TrainerLost(SessionLost):
    """The trainer ended, or was silent too long, with the task."""


class ResultLost(SessionError):
    """The result was accepted, but its payload died before every receiver had it."""


class ResultRejected(SessionError):
    """The host does not take the result, and never will."""


class ResultConflict(SessionError):
    """Another content was sent for this task before."""


class ResultUndelivered(SessionError):
    """The result was accepted, but a receiver did not get its payload."""


# -- what nurseries make of exceptions ---------------------------------------------------------------------------------


def alone(error: BaseException) -> BaseException:
    """What went wrong, without the groups that nurseries put around a single thing."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
