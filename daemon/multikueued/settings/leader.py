"""Settings of what the leader does beside dispatching."""

from __future__ import annotations

from datetime import timedelta

import attrs

from multikueued.settings.value_types import ObjectName, ProbeInterval


@attrs.frozen
class BoundTokenSettings:
    """Tokens of workers that end, and are renewed by the leader (`multikueue worker add --bound`)."""

    enabled: bool = False
    """On: at 80 % of such a token's life the leader asks the worker for a new one, with the worker's own credentials,
    and writes it into the Secret with the kubeconfig. It needs the permission to patch Secrets for that."""
    secret_names: tuple[ObjectName, ...] = ()
    """The only Secrets that it may write: the role names them. Empty: any Secret of the daemon's namespace."""


@attrs.frozen
class FindingsSettings:
    """What the leader sees of workers, for people who may not read their credentials."""

    enabled: bool = True
    """On: the leader looks at each worker as `multikueue doctor` does, with the credentials that it has, and writes
    what it sees into a ConfigMap. `multikueue doctor`, `explain` and `status` read it there."""
    interval: ProbeInterval = timedelta(minutes=10)
    """Between two looks at a worker. There is one after each connection, too. Quotas are read every 30 s; what a worker
    has granted is asked for again with every sixth look, and by other credentials."""
    config_map_name: ObjectName = "multikueue-findings"
    """The ConfigMap in the daemon's namespace. Whoever may read it sees names of queues and namespaces of workers, and
    their quotas; no credentials and no addresses. Two daemons with different `controllerName`s need two names; `status`
    and `explain` find it by its label `multikueue.dev/findings`. Who may not list ConfigMaps there sees the one of the
    default name, where that may be read."""
