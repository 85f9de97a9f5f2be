#!/bin/sh
# pykube-ng 23.6.0 (Python), update() of an object: a label that was taken off, and a list that was made shorter.
# Behaviour: what was removed since the object was read is put back before the patch is sent, so the label and the entry stay.
# What was changed or added is sent.
# Output seen: labels sent: a=1 b=2; finalizers sent: x/y x/z
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check pykube-ng==23.6.0
cat > finding.py <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pykube

sent = []
METADATA = {"name": "a", "namespace": "ns", "labels": {"a": "1", "b": "1"}, "finalizers": ["x/y", "x/z"]}


class Server(BaseHTTPRequestHandler):
    def do_PATCH(self):
        sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = json.dumps(sent[-1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
api = pykube.HTTPClient(pykube.KubeConfig.from_url(f"http://127.0.0.1:{server.server_port}"))
config_map = pykube.ConfigMap(api, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": METADATA})
del config_map.labels["a"]
config_map.labels["b"] = "2"
del config_map.metadata["finalizers"][1]
config_map.update()
labels = (f"{name}={value}" for name, value in sorted(sent[0]["metadata"]["labels"].items()))
print("labels sent:", " ".join(labels), end="; ")
print("finalizers sent:", *sent[0]["metadata"]["finalizers"])
PY
seen=$(own/bin/python finding.py)
wanted='labels sent: a=1 b=2; finalizers sent: x/y x/z'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
