"""Control planes inside this process: an API server that answers like a real one, with a small Kueue and a job runner.

For the demo, for tests and for people who write an adapter. Nothing here is meant for production, and nothing outside
this package but the demo imports it.
"""

from __future__ import annotations

from multikueue.sandbox.apiserver.serving.server import ApiServer
from multikueue.sandbox.jobs import JobRunner, RunnerOptions
from multikueue.sandbox.kinds import EACH, Counters, InTemplates, Roles, SandboxKind, Stage, Stages
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.sandbox import Sandbox, SandboxCluster, SandboxOptions

__all__ = [
    "EACH",
    "ApiServer",
    "Counters",
    "InTemplates",
    "JobRunner",
    "Roles",
    "RunnerOptions",
    "Sandbox",
    "SandboxCluster",
    "SandboxKind",
    "SandboxOptions",
    "SmallKueue",
    "Stage",
    "Stages",
]
