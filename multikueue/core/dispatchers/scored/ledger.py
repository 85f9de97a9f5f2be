"""Who is ahead: the room that waiting Workloads of this manager have a claim to, on every queue of the workers.

One ledger serves the manager. It is a function of what was put in last, whatever the order it came in. A change costs
in proportion to the number of *different* requests that wait, not to the number of Workloads.
"""

from __future__ import annotations

import bisect
from collections.abc import Container
from datetime import datetime
from heapq import heapify, heappop, heappush, merge

from multikueue.core.dispatchers.scored.entries import Entry, Kind, Line, Rank
from multikueue.core.dispatchers.scored.facts import FlavorAmounts, Flavored, Place, QueueFacts
from multikueue.core.dispatchers.scored.room import placed, without
from multikueue.core.model.names import ObjectKey


class Ledger:
    """Entries and queues. Driven by one task; it reads no clock."""

    def __init__(self) -> None:
        """An empty one."""
        self._entries: dict[ObjectKey, Entry] = {}
        self._queues: dict[Place, QueueFacts] = {}
        self._offers: dict[Place, dict[ObjectKey, Entry]] = {}
        self._held: dict[Kind, list[Rank]] = {}
        self._kinds: dict[Place, dict[Kind, None]] = {}
        self._lines: dict[Place, Line] = {}
        self._woken: dict[Place, dict[ObjectKey, bool]] = {}
        self._dirty: set[Place] = set()
        self._bases: dict[Place, tuple[tuple[bool, bool], FlavorAmounts]] = {}
        self._taken: dict[Place, dict[ObjectKey, FlavorAmounts]] = {}

    def __contains__(self, key: ObjectKey) -> bool:
        """Whether a Workload is counted."""
        return key in self._entries

    def put(self, entry: Entry) -> None:
        """Insert or replace by key; an equal one changes nothing."""
        if self._entries.get(entry.key) == entry:
            return
        self.drop(entry.key)
        self._entries[entry.key] = entry
        for place in entry.offered:
            self._offers.setdefault(place, {})[entry.key] = entry
            self._forget(place)
        if entry.waits_for is None:
            return
        kind = entry.kind
        bisect.insort(self._held.setdefault(kind, []), entry.rank)
        for place in entry.waits_for:
            self._kinds.setdefault(place, {})[kind] = None
            line = self._lines.get(place)
            if line is not None and self._place(entry, place, line.base) is not None:
                self._forget_line(place)

    def drop(self, key: ObjectKey) -> None:
        """It has a worker, has ended, or has lost its quota."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        for place in entry.offered:
            del self._offers[place][key]
            self._forget(place)
        if entry.waits_for is None:
            return
        kind = entry.kind
        ranked = self._held[kind]
        del ranked[bisect.bisect_left(ranked, entry.rank)]
        for place in entry.waits_for:
            if not ranked:
                del self._kinds[place][kind]
            line = self._lines.get(place)
            if line is not None and (key in line.before or self._place(entry, place, line.base) is not None):
                self._forget_line(place)
            self._woken.get(place, {}).pop(key, None)
            if (facts := self._queues.get(place)) is not None and facts.may_preempt:
                self._dirty.add(place)
        if not ranked:
            del self._held[kind]

    def set_queue(self, place: Place, facts: QueueFacts | None) -> None:
        """A queue as it is now; None: it is gone, or the worker is."""
        if facts == self._queues.get(place):
            return
        if facts is None:
            del self._queues[place]
        else:
            self._queues[place] = facts
        self._forget(place)

    def net(self, key: ObjectKey, place: Place, now: datetime) -> FlavorAmounts | None:
        """Free at a place for one Workload, net of offers and of claims ahead of it; None: the queue is not known."""
        if place not in self._queues:
            return None
        line, entry = self._line(place, now), self._entries.get(key)
        if entry is None or place not in entry.offered:
            return line.before.get(key, line.rest)
        if entry.doubtful:
            return line.base
        own = self._taken[place].get(key, {})
        return {flavored: amount + own.get(flavored, 0) for flavored, amount in line.rest.items()}

    def offers(self, key: ObjectKey, place: Place) -> int:
        """How many others are offered at a place."""
        here = self._offers.get(place, {})
        return len(here) - (key in here)

    def leads(self, key: ObjectKey, place: Place) -> bool:
        """Whether it is the first of its priority that is held for a place, and none of that priority is offered there:
        then it may be offered there to see whether the worker preempts for it."""
        entry = self._entries.get(key)
        if entry is None or any(
            offered.priority == entry.priority for other, offered in self._offers.get(place, {}).items() if other != key
        ):
            return False
        for kind in self._kinds.get(place, {}) if place not in entry.offered else ():
            ranked = self._held[kind]
            at = bisect.bisect_left(ranked, (-entry.priority,))
            if at < len(ranked) and ranked[at].lower == -entry.priority and ranked[at][1:3] < entry.rank[1:3]:
                return False
        return True

    def woken(self, now: datetime) -> tuple[ObjectKey, ...]:
        """Held Workloads to plan again, since the last call: for these, a free that has grown has room now.

        Oldest first, as many as fit; all, where figures have become unknown; where a worker may preempt, also those
        that it may be asked for now (`leads`). To be called after changes, and every few seconds, as a queue of others
        counts for a while only.
        """
        keys: dict[ObjectKey, None] = {}
        for place in self._queues:
            self._base(place, now)
        for place in sorted(self._dirty):
            before, here = self._woken.get(place, {}), self._candidates(place, now)
            keys.update((key, None) for key, fits in here.items() if fits > before.get(key, -1))
            self._woken[place] = here
        self._dirty.clear()
        return tuple(keys)

    def held(self, apart_from: Container[Place] = ()) -> list[ObjectKey]:
        """Held Workloads that go to none of these places, in their order."""
        kinds = [ranked for kind, ranked in self._held.items() if not any(place in apart_from for place in kind.places)]
        return [rank.key for rank in merge(*kinds)]

    def waiting(self) -> list[Entry]:
        """All that no worker is offered."""
        return [entry for entry in self._entries.values() if not entry.offered]

    def _candidates(self, place: Place, now: datetime) -> dict[ObjectKey, bool]:
        """Whom it may be offered to, and whether they fit: who only leads is woken again when it does."""
        facts = self._queues.get(place)
        if facts is None or not facts.active:
            return {}
        if facts.is_raced:
            return {rank.key: True for kind in self._kinds.get(place, {}) for rank in self._held[kind]}
        fits = dict.fromkeys(self._line(place, now).before, True)
        return fits | {key: False for key in (self._leaders(place) if facts.may_preempt else ()) if key not in fits}

    def _leaders(self, place: Place) -> list[ObjectKey]:
        """The first held Workload of each priority, where none of that priority is offered."""
        taken = {-entry.priority for entry in self._offers.get(place, {}).values()}
        leaders: dict[int, Rank] = {}
        for kind in self._kinds.get(place, {}):
            ranked, at = self._held[kind], 0
            while at < len(ranked):
                first = ranked[at]
                leaders[first.lower] = min(first, leaders.get(first.lower, first))
                at = bisect.bisect_left(ranked, (first.lower + 1,))
        return [rank.key for lower, rank in sorted(leaders.items()) if lower not in taken]

    def _forget(self, place: Place) -> None:
        self._bases.pop(place, None)
        self._forget_line(place)

    def _forget_line(self, place: Place) -> None:
        """What is held has changed, and not what is free without it."""
        self._lines.pop(place, None)
        self._dirty.add(place)

    def _line(self, place: Place, now: datetime) -> Line:
        self._base(place, now)
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = self._walk(place, now)
            woken = {} if self._queues[place].is_raced else self._woken.get(place, {})
            for key in [key for key, fits in woken.items() if fits and key not in line.before]:
                del woken[key]  # it came too late, and is woken when it fits again
        return line

    def _walk(self, place: Place, now: datetime) -> Line:
        """Let all that are held for a place pass in their order, and take what they need."""
        left = base = self._base(place, now)
        before = dict[ObjectKey, FlavorAmounts]()
        queues: dict[str, list[tuple[Rank, int, Kind]]] = {}
        for kind in self._kinds.get(place, {}):
            first = self._held[kind][0]
            if self._place(self._entries[first.key], place, base) is not None:
                queues.setdefault(kind.queue, []).append((first, 0, kind))  # what fits nowhere here holds up nobody
        for heads in queues.values():
            heapify(heads)
        waiting = [(self._entries[heads[0][0].key].reserved, name) for name, heads in queues.items()]
        heapify(waiting)
        while waiting:
            name = heappop(waiting)[1]
            heads = queues[name]
            rank, index, kind = heappop(heads)
            ranked = self._held[kind]
            taken = self._place(self._entries[rank.key], place, left)
            if taken is not None:  # else none of its kind fits any more
                before[rank.key], left = left, without(left, taken)
                if index + 1 < len(ranked):
                    heappush(heads, (ranked[index + 1], index + 1, kind))
            if heads:
                heappush(waiting, (self._entries[heads[0][0].key].reserved, name))
        return Line(base, before, left)

    def _base(self, place: Place, now: datetime) -> FlavorAmounts:
        """What is free net of offers. Time alone may change it: others count for a while, and so does a penalty."""
        facts, known = self._queues[place], self._bases.get(place)
        state = facts.has_room_to_give(now), facts.penalized(now)
        if known is not None and known[0] == state:
            return known[1]
        if known is not None:
            self._forget_line(place)
        self._bases[place] = state, self._net_of_offers(place, now)
        return self._bases[place][1]

    def _net_of_offers(self, place: Place, now: datetime) -> FlavorAmounts:
        facts, each = self._queues[place], self._taken.setdefault(place, {})
        each.clear()
        if not facts.has_room_to_give(now) or (facts.penalized(now) and self._offers.get(place)):
            return {}
        left = facts.free
        for key, entry in sorted(self._offers.get(place, {}).items(), key=lambda item: item[1].rank):
            taken = {} if entry.doubtful else self._place(entry, place, left)
            each[key] = self._taken_by(entry, place, left) if taken is None else taken
            left = without(left, each[key])
        return left

    def _place(self, entry: Entry, place: Place, free: FlavorAmounts) -> dict[Flavored, int] | None:
        facts = self._queues.get(place)
        return None if facts is None or not free else placed(entry.request, facts.groups, free)

    def _taken_by(self, entry: Entry, place: Place, free: FlavorAmounts) -> dict[Flavored, int]:
        """What it would take of a place that may have no room for it now: of the flavors of which least is missing."""
        facts = self._queues[place]
        return placed(entry.request, facts.groups, facts.ceiling, free) or {}
