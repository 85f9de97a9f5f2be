"""Workers that cannot be asked from here, as the daemon has seen them: by its ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CONFIG_MAP
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Forbidden, NotFound
from multikueued.doctor.cluster_reader import Client
from multikueued.reports.doctor.facts import Credentials, Facts, NotChecked
from multikueued.reports.published import Published, published_in


async def published(client: Client, facts: Facts) -> dict[str, Published]:
    """What the daemon has published; nothing if it has not, or it may not be read.

    Raises:
        ApiError: the manager does not answer, or does not accept the credentials.
    """
    name = str(facts.settings.findings.config_map_name)
    try:
        return published_in(await client.get(CONFIG_MAP, ObjectKey(facts.daemon_namespace, name)))
    except (NotFound, Forbidden):
        return {}


def completed(facts: Facts, known: dict[str, Published]) -> Facts:
    """The facts with the workers that were not asked from here, as the daemon saw them."""
    names = facts.objects.clusters_by_name.keys() & known.keys() - facts.workers.keys()
    taken = {name: known[name] for name in sorted(names) if known[name].at is not None}
    workers = {**facts.workers, **{name: one.on_this_machine(facts.clock) for name, one in taken.items()}}
    gaps = [gap for gap in facts.not_checked if gap.what.partition(" itself")[0] not in taken]
    told = [gap for name, one in taken.items() for gap in _gaps(name, one, facts.not_checked)]
    return attrs.evolve(
        facts,
        workers=dict(sorted(workers.items())),
        credentials={**_credentials(taken), **facts.credentials},
        seen_at={name: one.at for name, one in taken.items() if one.at is not None},
        not_checked=(*gaps, *told),
    )


def _credentials(taken: Mapping[str, Published]) -> dict[str, Credentials]:
    """When they expire; what the Secret holds that is not in use yet is not known."""
    return {name: one.credentials for name, one in taken.items() if one.credentials is not None}


def _gaps(name: str, one: Published, here: Iterable[NotChecked]) -> list[NotChecked]:
    """What the daemon could not see, and what only somebody with the credentials can."""
    assert one.at is not None, "it was looked at"
    seen = f"as the daemon saw it at {timestamp(one.at)}"
    why = next((gap for gap in here if gap.what.startswith(f"{name} itself")), None)
    own = (
        []
        if why is None
        else [NotChecked(f"{name} from here, and the Secret with its kubeconfig ({seen})", why.why, why.who)]
    )
    return [*own, *(attrs.evolve(gap, why=f"{gap.why} ({seen})") for gap in one.not_checked)]
