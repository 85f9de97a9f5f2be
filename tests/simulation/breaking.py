"""What breaks: the network, the daemon, and what leads from one cluster to the other."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import cluster_name, is_finished
from tests.simulation.daemon import WORKER_LOST_TIMEOUT, Death
from tests.simulation.objects import find, has_ended, objects
from tests.simulation.scene import Scene
from tests.simulation.weather import FINE
from tests.simulation.world import CANARY, kubeconfig

Trouble = Callable[[Scene], Awaitable[None]]


async def partition(scene: Scene) -> None:
    """Nothing gets through to a cluster, the manager perhaps."""
    link = scene.dice.choice([*scene.world.workers.values(), scene.world.manager]).link
    scene.note(link.name)
    link.change(down=True)
    await anyio.sleep(scene.dice.choice((2, 20, 60, 250)))
    link.change(down=False)


async def partition_for_long(scene: Scene) -> None:
    """A worker that runs a job is lost for as long as it takes to give it up, and comes back."""
    run = await scene.running()
    if run is not None:
        link = run[0].link
        link.change(down=True)
        await anyio.sleep(WORKER_LOST_TIMEOUT.total_seconds() + scene.seconds(-10, 60))
        link.change(down=False)


async def silence(scene: Scene) -> None:
    """A worker accepts connections and says nothing."""
    link = scene.worker().link
    scene.note(link.name)
    link.change(silent=True)
    await anyio.sleep(scene.dice.choice((20, 120, 250)))
    link.change(silent=False)
    link.cut()


async def deafness(scene: Scene) -> None:
    """The watches of a cluster hang, and everything else goes on."""
    link = scene.dice.choice([*scene.world.workers.values(), scene.world.manager]).link
    scene.note(link.name)
    link.change(deaf=True)
    await anyio.sleep(scene.dice.choice((5, 40, 150)))
    link.change(deaf=False)


async def bad_weather(scene: Scene) -> None:
    """Everything is slow and some of it is lost."""
    for place in scene.world.clusters:
        place.link.change(
            latency=scene.dice.choice((0.002, 0.05, 0.5)),
            lag=scene.dice.choice((0.0, 0.0, 0.3, 3.0, 12.0)),
            lost_requests=scene.dice.choice((0.0, 0.05, 0.3)),
            lost_replies=scene.dice.choice((0.0, 0.1, 0.3)),
            refused=scene.dice.choice((0.0, 0.1)),
            expired_watches=scene.dice.choice((0.0, 0.2)),
        )
    await anyio.sleep(scene.seconds(10, 120))
    fine_weather(scene)


def fine_weather(scene: Scene) -> None:
    """End bad weather; what is down or silent stays so."""
    for place in scene.world.clusters:
        place.link.change(
            latency=FINE.latency, lag=0.0, lost_requests=0.0, lost_replies=0.0, refused=0.0, expired_watches=0.0
        )


async def stale_cache(scene: Scene) -> None:
    """What happens on one cluster is seen late."""
    link = scene.dice.choice(scene.world.clusters).link
    lag = scene.dice.choice((1.0, 6.0, 25.0))
    scene.note(f"{link.name} by {lag:g} s")
    link.change(lag=lag)
    await anyio.sleep(scene.seconds(10, 120))
    link.change(lag=0.0)


async def cut(scene: Scene) -> None:
    """Every connection breaks."""
    for place in scene.world.clusters:
        place.link.cut()


async def forget_history(scene: Scene) -> None:
    """No server knows any more what changed: 410 for every watch."""
    for place in scene.world.clusters:
        place.registry.compact()
        place.link.cut()


async def end_daemon(scene: Scene) -> None:
    """The daemon is stopped, in one way or another."""
    death = scene.dice.choice(list(Death))
    scene.note(death.value)
    await scene.daemon.kill(death)


async def crash_daemon(scene: Scene) -> None:
    """The daemon dies beside a call of its own: before or after it took effect, or some awaits later."""
    scene.daemon.kill_at(scene.dice.choice((1, 2, 3, 4, 5, 8, 13)), scene.dice.choice((0, 0, 1, 2, 5, 12)))


async def reconfigure(scene: Scene) -> None:
    """The config lists fewer workers for a while."""
    names = sorted(scene.world.workers)
    kept = scene.dice.sample(names, scene.dice.randint(1, len(names) - 1))
    scene.note(f"only {kept}")
    await scene.world.configure(kept)
    await anyio.sleep(scene.seconds(5, 120))
    await scene.world.configure(names)


async def withdraw(scene: Scene) -> None:
    """The config lists a worker no more while a job runs there."""
    run = await scene.running()
    if run is None:
        return
    await scene.world.configure(sorted(set(scene.world.workers) - {run[0].name}))
    await anyio.sleep(scene.seconds(5, 120))
    await scene.world.configure(sorted(scene.world.workers))


async def remove_cluster(scene: Scene) -> None:
    """A MultiKueueCluster is deleted and made again."""
    worker = scene.worker().name
    scene.note(worker)
    await scene.world.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", worker))
    await anyio.sleep(scene.seconds(5, 60))
    await scene.world.manager.api.create(MULTIKUEUE_CLUSTER, scene.world.cluster_of(worker))


async def remove_for_good(scene: Scene) -> None:
    """A MultiKueueCluster is deleted and does not come back; what runs there runs on."""
    names = sorted(scene.world.workers)[1:-1]
    if names and not scene.world.gone:
        worker = scene.dice.choice(names)
        scene.note(worker)
        scene.world.gone.add(worker)
        # Finished as its copy there told, while its job was out of sight: nothing shows how that ended any more.
        finished = filter(is_finished, objects(scene.world.manager, WORKLOAD))
        scene.promises.removed |= {ObjectKey.of(each) for each in finished if cluster_name(each) == worker}
        if find(scene.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", worker)) is not None:
            await scene.world.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", worker))


async def rotate_token(scene: Scene) -> None:
    """A credential is replaced, and the new one is known on the manager at once or later."""
    worker = scene.worker()
    scene.tokens += 1
    worker.link.revoke(f"{CANARY}-{worker.name}-{scene.tokens}")
    worker.link.on_change()
    worker.link.cut()
    await anyio.sleep(scene.dice.choice((0.0, 30.0)))
    await scene.world.write_kubeconfig(worker.name)


async def break_kubeconfig(scene: Scene) -> None:
    """A kubeconfig is damaged, and repaired."""
    worker = scene.worker()
    document = kubeconfig(worker.name, worker.link.token)
    text = json.dumps(document)
    name, damaged = scene.dice.choice(
        (
            ("cut off", text[:-30]),
            ("not YAML", f"token: {worker.link.token}: [{worker.link.token}"),
            ("a file on the manager", text.replace('"token":', '"tokenFile": "/etc/passwd", "token":')),
            ("no TLS", text.replace('"server":', '"insecure-skip-tls-verify": true, "server":')),
            ("an old token", json.dumps(kubeconfig(worker.name, f"{CANARY}-old"))),
            ("no user", json.dumps({**document, "users": []})),
        )
    )
    scene.note(f"{worker.name}: {name}")
    await scene.world.write_kubeconfig(worker.name, damaged)
    await anyio.sleep(scene.seconds(5, 90))
    await scene.world.write_kubeconfig(worker.name)


async def mutate_copies(scene: Scene) -> None:
    """From now on a webhook on a worker changes what is created there."""
    scene.worker().link.change(mutates_copies=True)


async def finish_unseen(scene: Scene) -> None:
    """A job ends while its worker is cut off, and is removed there before anyone has seen that.

    With it goes its Workload copy, or not: then that still says that the job has ended.
    """
    run = await scene.job()
    if run is None:
        return
    worker, key = run
    scene.promises.removed.add(key)
    worker.link.change(down=True)
    for _ in range(150):
        job = find(worker, JOB, key)
        if job is None or has_ended(job):
            break
        await anyio.sleep(1.0)
    if job is not None and has_ended(job):
        await worker.api.delete(JOB, key, propagation=scene.dice.choice(("Orphan", "Background")))
    await anyio.sleep(scene.seconds(1, 30))
    worker.link.change(down=False)


TROUBLES: Final[tuple[Trouble, ...]] = (
    partition,
    partition,
    partition_for_long,
    silence,
    deafness,
    bad_weather,
    bad_weather,
    stale_cache,
    cut,
    forget_history,
    end_daemon,
    end_daemon,
    crash_daemon,
    crash_daemon,
    reconfigure,
    withdraw,
    withdraw,
    remove_cluster,
    remove_for_good,
    rotate_token,
    break_kubeconfig,
    mutate_copies,
    finish_unseen,
    finish_unseen,
)
