"""How each party behaves: the machines, composed into cores.

``Trainer`` and ``Host`` are the two ends of a session, ``Receiver`` one download, ``Supervisor`` one backend with its hosts.
"""

from __future__ import annotations

from collections.abc import Mapping

from troth.spec.party import Party
from troth.statemachines.host import HOST, Host, HostConfig
from troth.statemachines.receiver import RECEIVER, Receiver, ReceiverConfig
from troth.statemachines.supervisor import SUPERVISOR, Supervisor, SupervisorConfig
from troth.statemachines.trainer import TRAINER, Trainer, TrainerConfig

PARTIES: Mapping[str, Party] = {party.name: party for party in (TRAINER, HOST, RECEIVER, SUPERVISOR)}
"""Every party of the protocol by name."""

__all__ = [
    "HOST",
    "PARTIES",
    "RECEIVER",
    "SUPERVISOR",
    "TRAINER",
    "Host",
    "HostConfig",
    "Receiver",
    "ReceiverConfig",
    "Supervisor",
    "SupervisorConfig",
    "Trainer",
    "TrainerConfig",
]
