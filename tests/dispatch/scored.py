"""The scored dispatcher, as the simulated engine asks it: facts from batched statuses, and one ledger of claims."""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Nomination
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import JobFacts, Place, QueueFacts, Room, Running, times_of_others
from multikueue.core.dispatchers.scored.kueue_objects import request
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.penalties import Failures
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.dispatchers.scored.room import Tree
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.dispatchers.scored.starts import Starts
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.dispatchers.scored.view import claim as ledger_entry
from multikueue.core.dispatchers.scored.view import view
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from tests.dispatch.clock import moment
from tests.dispatch.kueue import Copy
from tests.dispatch.manager import Manager
from tests.dispatch.manifests import NAMESPACE, conditions, group, kind, manifest, node
from tests.dispatch.sites import ONE_WAY, OwnRun, Site
from tests.dispatch.workloads import Workload

JUST_WON: Final = 3.0
"""Seconds for which a copy with quota may be missing in the status."""
TICK: Final = 5.0
"""Seconds after which the ledger is asked at the latest."""
ASKED_AFTER: Final = 60.0
"""Seconds from the quota until a user asks when a job starts that waits."""


@attrs.define
class _Known:
    """One worker, as the manager sees it."""

    site: Site
    base: Candidate
    place: Place
    facts: QueueFacts | None = None
    bare: Candidate = attrs.field(default=attrs.Factory(lambda self: self.base, takes_self=True))
    """With its queue, and nothing of a Workload."""
    due: bool = False
    """Whether its Kueue is about to write a status."""
    offered: set[str] = attrs.field(factory=set)
    """Names of jobs whose copies have no quota there, as far as is known."""
    failures: Failures = attrs.field(factory=Failures)


class ScoredPolicy:
    """See `manager.Policy`."""

    def __init__(self, manager: Manager, profile: Profile) -> None:
        self._manager = manager
        self._clock = manager.clock
        self._profile = profile
        self._dispatcher = Scored({"default": profile})
        self._stale = manager.settings.stale
        self._ledger = Ledger()
        self._known = {site.name: self._know(site) for site in manager.sites.values()}
        self._by_queue = [[self._known[site.name] for site in sites] for sites in manager.by_queue]
        self._objects: dict[ObjectKey, tuple[Workload, Json]] = {}
        self._entries: dict[ObjectKey, Entry] = {}
        self._jobs: dict[str, JobFacts] = {}
        self._starts = Starts()
        self._ticking = False
        for known in self._known.values():
            self._status(known, *self._snapshot(known))

    def nominate(self, workload: Workload) -> Nomination:
        """See `manager.Policy`."""
        key = ObjectKey(NAMESPACE, workload.job.name)
        known = self._objects.get(key)
        obj = known[1] if known else self._arrive(key, workload)
        if not known:
            self._starts.reserved(key, *kind(workload))
            self._clock.after(ASKED_AFTER, self._ask, workload, workload.reserved)
        now = moment(self._clock.now)
        places = self._by_queue[workload.job.queue]
        candidates = Candidates(
            tuple(self._candidate(worker, workload, key) for worker in places),
            workload.nominated,
            workload.message,
            self._facts(workload),
        )
        answer = self._dispatcher.nominate(obj, candidates, now)
        said = workload.message if answer.message is None else answer.message
        after = Candidates(candidates.workers, answer.names, said, candidates.facts)
        self._enter(key, obj, after, workload, answer.claim)
        for worker in places:
            (worker.offered.add if worker.site.name in answer.names else worker.offered.discard)(workload.job.name)
        self._tick_later()
        return answer

    def settled(self, workload: Workload) -> None:
        """See `manager.Policy`: what it has won may be missing in the status for a while."""
        key = ObjectKey(NAMESPACE, workload.job.name)
        for worker in self._by_queue[workload.job.queue]:
            worker.offered.discard(workload.job.name)
        known = self._objects.pop(key, None)
        self._entries.pop(key, None)
        begun = workload.reserved is not None and workload.winner is not None
        self._starts.left(key, *kind(workload), self._clock.now - (workload.reserved or 0.0) if begun else None)
        if workload.winner is not None:
            self._clock.after(JUST_WON, self._forget, key)
        elif known or workload.placements:
            self._ledger.drop(key)
            if workload.placements:
                self._blame(workload)

    def ended(self, workload: Workload, site: Site, copy: Copy) -> None:
        """See `manager.Policy`: its worker is well, and it needs no room there any more."""
        self._known[site.name].failures = Failures()
        self._ledger.drop(ObjectKey(NAMESPACE, workload.job.name))

    def touched(self, site: Site) -> None:
        """See `manager.Policy`: its Kueue writes a status soon, for all changes until then."""
        known = self._known.get(site.name) if hasattr(self, "_known") else None
        if known and not known.due:
            known.due = True
            self._clock.after(self._stale, self._write_status, known)

    def _know(self, site: Site) -> _Known:
        worker = site.worker
        labels = {f"gpu/{flavor.model}": "true" for flavor in worker.flavors} | {"region": worker.region}
        speed = sum(f.speed * (f.gpus or 1) for f in worker.flavors) / sum(f.gpus or 1 for f in worker.flavors)
        annotations = {"multikueue.dev/cost": str(worker.cost), "multikueue.dev/speed": f"{speed:.3f}"}
        base = Candidate(ClusterName(site.name), labels=labels, annotations=annotations)
        return _Known(site, base, (ClusterName(site.name), "pool"))

    def _candidate(self, known: _Known, workload: Workload, key: ObjectKey) -> Candidate:
        now, name = moment(self._clock.now), known.site.name
        said, copy = workload.answers.get(name), workload.copies.get(name)
        return Candidate(
            known.base.name,
            known.base.labels,
            known.base.annotations,
            available=known.site.reachable,
            nominated=name in workload.nominated,
            conditions=conditions(said),
            gate_open=said is not None and copy is not None and bool(workload.job.priority) and not copy.gated,
            facts=Room(
                known.facts,
                self._ledger.net(key, known.place, now),
                self._ledger.offers(key, known.place),
                bool(workload.job.priority) and self._ledger.leads(key, known.place),
            ),
        )

    def _facts(self, workload: Workload) -> JobFacts:
        known = self._jobs.get(workload.job.name)
        if known is None:
            known = self._jobs[workload.job.name] = JobFacts(request(manifest(workload)))
        return known

    def _arrive(self, key: ObjectKey, workload: Workload) -> Json:
        obj = manifest(workload)
        self._objects[key] = workload, obj
        bare = tuple(
            worker.bare if worker.site.reachable else attrs.evolve(worker.bare, available=False)
            for worker in self._by_queue[workload.job.queue]
        )
        self._enter(key, obj, Candidates(bare, (), workload.message, self._facts(workload)), workload)
        return obj

    def _enter(
        self, key: ObjectKey, obj: Json, candidates: Candidates, workload: Workload, claim: object = None
    ) -> None:
        """Where it could go changes only by what workers answer, or their loss: else only its offers are new."""
        names = candidates.nominated
        entry = self._entries.get(key)
        settled = not workload.answers and all(worker.available for worker in candidates.workers)
        if entry is not None and settled:
            stands = (claim.doubtful, claim.without_room) if isinstance(claim, Entry) else (False, False)
            offered = tuple(self._known[name].place for name in names)
            entry = attrs.evolve(entry, offered=offered, doubtful=stands[0], without_room=stands[1])
        else:
            now = moment(self._clock.now)
            seen = view(obj, candidates, self._profile, State.parse(candidates.message) or State(now), now)
            entry = ledger_entry(obj, candidates, seen, names)
        if entry is None:
            self._ledger.drop(key)
        else:
            self._entries[key] = entry
            self._ledger.put(entry)

    def _ask(self, workload: Workload, reserved: float) -> None:
        """When will it start?"""
        if workload.waits and workload.reserved == reserved:
            key = ObjectKey(NAMESPACE, workload.job.name)
            workload.promised = self._starts.interval(key, *kind(workload), ASKED_AFTER)

    def _forget(self, key: ObjectKey) -> None:
        if key not in self._objects:
            self._ledger.drop(key)

    def _blame(self, workload: Workload) -> None:
        latest = workload.placements[-1]
        known = self._known[latest.worker]
        faults = [placement for placement in workload.placements if placement.reason != "Preempted"]
        if faults == [latest]:
            known.failures = known.failures.failed(workload.job.tenant, moment(self._clock.now))
            self.touched(known.site)

    def _write_status(self, known: _Known) -> None:
        known.due = False
        known.site.later(ONE_WAY, self._status, known, *self._snapshot(known))

    def _snapshot(self, known: _Known) -> tuple[Tree, int, int, int]:
        """What the statuses of a worker say."""
        site, flavors = known.site, [flavor.model for flavor in known.site.worker.flavors]
        queues = {"pool": node(site.ours, flavors)}
        if site.theirs is not site.ours:
            queues["own"] = node(site.theirs, flavors)
        theirs = sum(isinstance(copy.owner, OwnRun) for copy in site.ours.running)
        return Tree(queues), site.ours.pending, len(site.ours.running) - theirs, theirs

    def _status(self, known: _Known, tree: Tree, pending: int, ours: int, theirs: int) -> None:
        now, before = moment(self._clock.now), known.facts
        others = max(0, pending - len(known.offered))
        waiting, shared = times_of_others(others, theirs, now, before)
        known.facts = QueueFacts(
            "pool",
            (group(known.site.worker),),
            free=tree.available("pool"),
            ceiling=tree.ceiling("pool"),
            nominal=tree.nominal("pool"),
            others_pending=others,
            others_since=waiting,
            shared_since=shared,
            within="LowerPriority" if self._manager.urgent else "Never",
            reclaim="Any" if known.site.ours.reclaim else "Never",
            borrowable=tree.borrowable("pool"),
            lent=tree.lent("pool"),
            penalized_until=known.failures.until,
            running=(Running(0, {}),) if ours else (),
        )
        known.bare = attrs.evolve(known.base, facts=Room(known.facts))
        self._ledger.set_queue(known.place, known.facts)
        self._wake()

    def _wake(self) -> None:
        for key in self._ledger.woken(moment(self._clock.now)):
            if known := self._objects.get(key):
                self._manager.look(known[0])

    def _tick_later(self) -> None:
        if not self._ticking:
            self._ticking = True
            self._clock.after(TICK, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        if self._objects:
            self._wake()
            self._tick_later()
