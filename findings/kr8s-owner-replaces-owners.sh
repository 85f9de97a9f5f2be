#!/bin/sh
# kr8s 0.20.15 (Python), objects: set_owner() and adopt(), of an object that has another owner, as by kubectl's or a controller's
# hand.
# Behaviour: the patch it sends has a list of the one new owner, and it is a merge patch, which replaces lists: the earlier owners
# are gone, and with them what deletes the object when they go. One would have guessed that an owner is added.
# Output seen: sent as merge-patch+json, owners: new
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kr8s==0.20.15
cat > finding.py <<'PY'
import asyncio
import contextlib
import json

from kr8s.asyncio.objects import Job


class Api:
    """Keeps what is sent."""

    namespace = "a"
    sent = None

    @contextlib.asynccontextmanager
    async def call_api(self, *arguments, content, headers, **more):
        self.sent = headers["Content-Type"], json.loads(content)
        yield self

    def json(self):
        return {}


def job(name, **metadata):
    raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "a", "uid": name, **metadata}}
    return Job(raw, api=Api())


first = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "first", "uid": "first"}
child = job("child", ownerReferences=[first])
asyncio.run(child.set_owner(job("new")))
kind, patch = child.api.sent
owners = [owner["name"] for owner in patch["metadata"]["ownerReferences"]]
print(f"sent as {kind.partition('/')[2]}, owners: {' '.join(owners)}")
PY
seen=$(own/bin/python finding.py)
wanted='sent as merge-patch+json, owners: new'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
