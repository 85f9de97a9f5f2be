"""For the tests of those who write controllers and adapters with this library.

- `InMemoryCluster`: an API server in memory, with a client, faults on request, and ways to wait for an object. All of
  it goes by the loop's clock, so it works on virtual time too.
- `job`, `workload`, `copy_of`, `job_copy_of`, `queues`, `workers`: objects as users, Kueue, the dispatcher and
  administrators write them.
- `until`, `running`: wait for a condition, and run services meanwhile.
- `Sandbox`: a manager and workers that speak HTTPS, each with a small Kueue and a job runner.

The library never imports this package.
"""

from __future__ import annotations

from multikueue import field_help as _field_help
from multikueue.sandbox import (
    EACH,
    Counters,
    InTemplates,
    Roles,
    RunnerOptions,
    Sandbox,
    SandboxKind,
    SandboxOptions,
    Stage,
    Stages,
)
from multikueue.sandbox.apiserver import (
    CutWatch,
    Delay,
    ExpireWatch,
    Fault,
    Faults,
    Hang,
    Match,
    Refuse,
    Reset,
    SilenceWatch,
)
from multikueue.testing.cluster import InMemoryCluster
from multikueue.testing.objects import NOW, contains, copy_of, job, job_copy_of, queues, stored, workers, workload
from multikueue.testing.waiting import LoopClock, running, until

__all__ = [
    "EACH",
    "NOW",
    "Counters",
    "CutWatch",
    "Delay",
    "ExpireWatch",
    "Fault",
    "Faults",
    "Hang",
    "InMemoryCluster",
    "InTemplates",
    "LoopClock",
    "Match",
    "Refuse",
    "Reset",
    "Roles",
    "RunnerOptions",
    "Sandbox",
    "SandboxKind",
    "SandboxOptions",
    "SilenceWatch",
    "Stage",
    "Stages",
    "contains",
    "copy_of",
    "job",
    "job_copy_of",
    "queues",
    "running",
    "stored",
    "until",
    "workers",
    "workload",
]

for _name in __all__:
    _field_help.explained(globals()[_name])
