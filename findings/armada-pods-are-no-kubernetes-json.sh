#!/bin/sh
# armada-client 0.5.1 (Python), with the protobuf that it brings: a pod spec as Kubernetes writes it, for a job.
# Behaviour: json_format reads the messages' own JSON, in which a quantity is an object, {"string": "1"}, as are times and a port;
# the same pod with "cpu": "1" is a ParseError, and what it writes no API server reads. One would have guessed Kubernetes' JSON,
# as the messages are Kubernetes' and their names say so; it matters to who takes manifests to Armada.
# Output seen: "1": ParseError; {"string": "1"}: read
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check armada-client==0.5.1
cat > finding.py <<'PY'
import json

from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from google.protobuf import json_format


def said(amount):
    container = {"name": "a", "resources": {"requests": {"cpu": amount}}}
    try:
        json_format.ParseDict({"containers": [container]}, core.PodSpec())
    except json_format.ParseError:
        return "ParseError"
    return "read"


print("; ".join(f"{json.dumps(amount)}: {said(amount)}" for amount in ("1", {"string": "1"})))
PY
seen=$(own/bin/python finding.py)
wanted='"1": ParseError; {"string": "1"}: read'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
