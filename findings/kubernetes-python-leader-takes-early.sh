#!/bin/sh
# kubernetes 35.0.0 (Python), leaderelection: a candidate that waits for a holder who promised more time.
# Behaviour: the holder's leaseDurationSeconds, here 60, is read and not used; the candidate takes the lock after its own
# lease_duration, here 3, so two versions of one program with different settings lead at once. (client-go counts the holder's.)
# Output seen: taken after 3 s of 60
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==35.0.0
cat > finding.py <<'PY'
import time

from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord


class Lock:
    """A lock in memory with the methods of ConfigMapLock."""

    name, namespace, identity = "lock", "ns", "second"
    record = LeaderElectionRecord("first", "60", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z")

    def get(self, name, namespace):
        return True, self.record

    def update(self, name, namespace, record):
        self.record = record
        return True


election = leaderelection.LeaderElection(
    electionconfig.Config(
        Lock(), lease_duration=3, renew_deadline=2, retry_period=1, onstarted_leading=print, onstopped_leading=print
    )
)
began = time.monotonic()
election.acquire()
print(f"taken after {time.monotonic() - began:.0f} s of 60")
PY
seen=$(own/bin/python finding.py)
wanted='taken after 3 s of 60'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
