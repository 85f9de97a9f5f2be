"""What one worker says and is, and what a user asks for a job: for runs whose daemon chooses (`choosing.py`)."""

from __future__ import annotations

import random
from typing import Final

import attrs

from multikueue.core.dispatchers.scored.job_annotations import (
    FLAVORS,
    NAMES,
    PREFERENCE,
    SELECTOR,
    TAINTS,
    TOGETHER,
    TOLERATIONS,
)
from multikueue.core.dispatchers.scored.score import COST, SPEED

SPOT: Final = "spot-flavor"
"""A second flavor of workers, and one that no job of the manager gets."""
REGION: Final = "example.com/region"


@attrs.frozen
class Site:
    """One worker."""

    annotations: dict[str, str] = attrs.field(factory=dict)
    """Of its MultiKueueCluster."""
    region: str = "eu"
    split: bool = False
    """Its quota is in two flavors: what needs more than the half fits in none."""
    checked: float = 0.0
    """Seconds that its own admission check takes; 0: it has none."""

    @property
    def tainted(self) -> bool:
        """Whether only jobs that tolerate it go there."""
        return TAINTS in self.annotations

    @property
    def closed(self) -> bool:
        """Whether it stands for a flavor that no job of the manager gets."""
        return FLAVORS in self.annotations


@attrs.frozen
class Wish:
    """What a user has asked for a job."""

    annotations: dict[str, str] = attrs.field(factory=dict)
    names: frozenset[str] | None = None
    region: str = ""
    tolerant: bool = False
    together: str = ""
    """The name of another Job."""
    unreadable: bool = False

    def allows(self, name: str, site: Site) -> bool:
        """Whether the job may go to a worker, as the documentation says; `together` apart."""
        named = self.names is None or name in self.names
        selected = not self.region or site.region == self.region
        tolerated = self.tolerant or not site.tainted
        return named and selected and tolerated and not site.closed and not self.unreadable


def draw_site(dice: random.Random, *, first: bool) -> Site:
    """The first one takes every job that names it."""
    annotations, region = dict[str, str](), dice.choice(("eu", "us"))
    if cost := dice.choice(("", "1", "2.5", "free")):
        annotations[COST] = cost
    if speed := dice.choice(("", "", "2")):
        annotations[SPEED] = speed
    kind = dice.choice(("", "", "tainted", "split", "checked", "closed"))
    if kind == "tainted" and not first:
        annotations[TAINTS] = "example.com/spot=true:NoDispatch"
    if kind == "closed" and not first:
        annotations[FLAVORS] = SPOT
    return Site(
        annotations,
        region,
        split=kind == "split" and not first,
        checked=dice.choice((10.0, 45.0, 80.0)) if kind == "checked" and not first else 0.0,
    )


def draw_wish(dice: random.Random, sites: dict[str, Site]) -> Wish:
    names, some = sorted(sites), dice.choice(sorted(sites))
    match dice.choice(("", "", "", "names", "names", "selector", "tolerant", "tolerant", "together", "odd", "prefers")):
        case "names":
            chosen = frozenset({some, dice.choice(names)})
            return Wish({NAMES: ", ".join(sorted(chosen))}, names=chosen)
        case "selector":
            region = sites[some].region
            return Wish({SELECTOR: dice.choice((f"{REGION}={region}", f"{REGION} in ({region})"))}, region=region)
        case "tolerant":
            return Wish({TOLERATIONS: dice.choice(("example.com/spot", "example.com/spot=true"))}, tolerant=True)
        case "together":
            return Wish({TOGETHER: "job/job-1"}, together="job-1")
        case "odd":
            return Wish(dice.choice(({SELECTOR: f"{REGION} in (eu"}, {NAMES: "W!"}, {TOGETHER: "?"})), unreadable=True)
        case "prefers":
            return Wish({PREFERENCE: dice.choice((f"{REGION}=us:100", "!", f"{REGION}=eu:7,{REGION}=us:3"))})
    return Wish()
