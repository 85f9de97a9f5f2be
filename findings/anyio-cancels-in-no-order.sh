#!/bin/sh
# anyio 4.16.0 (PyPI) on asyncio: in which order the tasks of a task group are told that it is cancelled.
# Behaviour: neither as they were started nor the other way round, but as a set of tasks has them, which hashes addresses; a
# scope that cancels the scopes within it does the same. A simulation on a virtual clock that is cancelled in its middle (a
# process that is stopped) goes on in another way in the next process, with the same seed and the same PYTHONHASHSEED, unless
# tasks and scopes are hashed by number. Tasks that only wake up (an event that is set) go on in the order in which they waited.
# Output seen: woken as they waited: True; cancelled as started: False, the other way round: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip -q install anyio==4.16.0
cat > order.py <<'PY'
import anyio

COUNT = 200


async def order_of(wait, end) -> list[int]:
    order = []

    async def child(number: int) -> None:
        try:
            await wait()
        finally:
            order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(COUNT):
            tasks.start_soon(child, number)
        await anyio.wait_all_tasks_blocked()
        end(tasks)
    return order


async def main() -> None:
    event = anyio.Event()
    woken = await order_of(event.wait, lambda _: event.set())
    cancelled = await order_of(anyio.sleep_forever, lambda tasks: tasks.cancel_scope.cancel())
    started = list(range(COUNT))
    assert sorted(cancelled) == started
    print(
        f"woken as they waited: {woken == started}; cancelled as started: {cancelled == started}, "
        f"the other way round: {cancelled[::-1] == started}"
    )


anyio.run(main)
PY
seen=$(env/bin/python order.py)
wanted='woken as they waited: True; cancelled as started: False, the other way round: False'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
