"""What Open Cluster Management does on its hub, small: for the demo, for tests, and for the placement check."""

from __future__ import annotations

from multikueue.sandbox.ocm.hub import OcmHub
from multikueue.sandbox.ocm.registering import join, managed_cluster, set_binding
from multikueue.sandbox.ocm.spokes import Spoke, Token, spoke_of

__all__ = ["OcmHub", "Spoke", "Token", "join", "managed_cluster", "set_binding", "spoke_of"]
