#!/bin/sh
# kr8s 0.20.15 (Python), objects: wait() for a field of a Job's status that a controller has not written yet.
# Behaviour: wait("jsonpath='{.status.succeeded}'=1") raises ValueError at once, as the field is absent, which it is for each new
# job; for a condition that is absent it waits. One would have guessed that it waits, as kubectl wait --for=jsonpath does.
# Output seen: condition: not yet; jsonpath: ValueError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kr8s==0.20.15
cat > finding.py <<'PY'
import asyncio

from kr8s.asyncio.objects import Job


class NewJob(Job):
    async def async_refresh(self):
        """As the server has it: unchanged."""

    async def async_watch(self):
        yield "ADDED", self
        raise TimeoutError


async def said(condition):
    job = NewJob({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "status": {}}, api=object())
    try:
        await job.wait(condition)
    except TimeoutError:
        return "not yet"
    except Exception as error:
        return type(error).__name__
    return "met"


for condition in "condition=Complete", "jsonpath='{.status.succeeded}'=1":
    print(f"{condition.partition('=')[0]}: {asyncio.run(said(condition))}")
PY
seen=$(own/bin/python finding.py)
wanted='condition: not yet
jsonpath: ValueError'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
