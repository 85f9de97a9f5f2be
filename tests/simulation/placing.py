"""What happens to an inventory: placements flap, scores move, profiles and credentials come and go."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Final

import anyio

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import NotFound
from multikueue.sandbox.ocm.kinds import DECISION, MANAGED_CLUSTER, PLACEMENT, PROFILE, SET_BINDING
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from tests.simulation.breaking import Trouble
from tests.simulation.inventory import LISTED, NAME, Inventory
from tests.simulation.scene import Scene


def hub_of(scene: Scene) -> Inventory:
    """The inventory of a run that has one."""
    assert scene.world.inventory is not None, "these troubles are drawn only where there is a hub"
    return scene.world.inventory


async def flap(scene: Scene) -> None:
    """A cluster leaves the decision and comes back, again and again; it may run something."""
    hub = hub_of(scene)
    run = await scene.running(30)
    worker = scene.worker().name if run is None else run[0].name
    scene.note(worker)
    for _ in range(scene.dice.choice((1, 3, 6))):
        await _label(hub, worker, "no")
        await anyio.sleep(scene.dice.choice((0.3, 3, 20, 70)))
        await _label(hub, worker, "yes")
        await anyio.sleep(scene.dice.choice((0.3, 3, 20)))


async def leave(scene: Scene) -> None:
    """A cluster that runs something leaves the decision for as long as that takes, or for longer."""
    run = await scene.running()
    if run is not None:
        await _label(hub_of(scene), run[0].name, "no")
        await anyio.sleep(scene.seconds(60, 240))
        await _label(hub_of(scene), run[0].name, "yes")


async def empty(scene: Scene) -> None:
    """A typo in the Placement empties its decision, or nothing matches any more."""
    typo: Json = {"tolerations": [{"value": "x"}]}
    nobody: Json = {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"no": "such"}}}}]}
    await _change(scene, scene.dice.choice((typo, nobody)))
    await anyio.sleep(scene.dice.choice((0.3, 5, 50, 90)))
    await _change(scene, hub_of(scene).spec)


async def only_one(scene: Scene) -> None:
    """Most clusters leave the decision at once."""
    kept = scene.worker().name
    scene.note(f"all but {kept}")
    await hub_of(scene).list([kept])
    await anyio.sleep(scene.dice.choice((2, 50, 90, 150)))
    await hub_of(scene).list(scene.world.workers)


async def move_scores(scene: Scene) -> None:
    """Every minute each cluster reports another score: by a little, or by a lot."""
    dice = random.Random(f"scores/{scene.world.seed}")
    most, steps = dice.choice(((4, (-2, 0, 2)), (100, (-60, -12, -3, 0, 3, 12, 60))))
    values = {name: dice.randint(-most, most) for name in sorted(scene.world.workers)}
    for _ in range(dice.choice((6, 12))):
        for name, value in values.items():
            await hub_of(scene).score(name, value)
            values[name] = max(-100, min(100, value + dice.choice(steps)))
        await anyio.sleep(60.0)


async def regroup(scene: Scene) -> None:
    """Decisions are spread over other PlacementDecisions, which are written one by one."""
    for size in scene.dice.choice(((1, "100%"), (2, 1, "100%"))):
        await _change(scene, {"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size}}})
        await anyio.sleep(scene.seconds(1, 30))


async def delete_decision(scene: Scene) -> None:
    """Somebody deletes a PlacementDecision; the hub makes it again."""
    listed = await scene.world.manager.api.list(DECISION, namespace=KUEUE_NAMESPACE)
    for decision in listed.items[:1]:
        await scene.world.manager.api.delete(DECISION, ObjectKey.of(decision))


async def unbind(scene: Scene) -> None:
    """The set is not bound any more for a while: the decision is empty, and all profiles are gone."""
    key = ObjectKey(KUEUE_NAMESPACE, "global")
    with suppress(NotFound):
        await scene.world.manager.api.delete(SET_BINDING, key)
    await anyio.sleep(scene.dice.choice((0.3, 10, 80)))
    await hub_of(scene).join()


async def delete_profile(scene: Scene) -> None:
    """A ClusterProfile is deleted, and its Secret with it; the hub makes them again."""
    worker = scene.worker().name
    scene.note(worker)
    await scene.world.manager.api.delete(PROFILE, ObjectKey(KUEUE_NAMESPACE, worker))


async def rotate(scene: Scene) -> None:
    """A token is replaced, a few times in a row; the one before is good for a while."""
    worker = scene.worker().name
    scene.note(worker)
    for _ in range(scene.dice.choice((1, 1, 4))):
        with suppress(NotFound):
            await scene.world.manager.api.delete(SECRET, ObjectKey(worker, NAME))
        await anyio.sleep(scene.dice.choice((0.3, 10)))


async def stop_reporting(scene: Scene) -> None:
    """A cluster's agent stops reporting, so it gets a taint; the cluster itself is well."""
    hub, worker = hub_of(scene), scene.worker().name
    scene.note(worker)
    hub.set_available(worker, False)
    await anyio.sleep(scene.dice.choice((5, 70, 150)))
    hub.set_available(worker, True)


async def _label(hub: Inventory, worker: str, value: str) -> None:
    patch = {"metadata": {"labels": {LISTED: value}}}
    await hub.manager.api.merge_patch(MANAGED_CLUSTER, ObjectKey("", worker), patch)


async def _change(scene: Scene, spec: Json) -> None:
    key = ObjectKey(KUEUE_NAMESPACE, CHECK)
    await scene.world.manager.api.merge_patch(PLACEMENT, key, {"spec": spec})


TROUBLES: Final[tuple[Trouble, ...]] = (
    flap,
    flap,
    leave,
    leave,
    empty,
    empty,
    only_one,
    regroup,
    delete_decision,
    unbind,
    delete_profile,
    delete_profile,
    rotate,
    rotate,
    stop_reporting,
)
