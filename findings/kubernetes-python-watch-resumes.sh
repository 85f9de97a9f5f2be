#!/bin/sh
# kubernetes 35.0.0 (Python), watch.Watch without a timeout: what it does when the server ends a stream, as each does in an hour.
# Behaviour: "tries to resume automatically" holds only after an event. A stream that was quiet ends the loop, as if nothing
# were ever to come; after a 410 (expired) it asks once more for the very version that expired, so it gets the 410 again.
# Output seen: quiet: ended after 1 request; expired: versions asked: none, 5, 5, then 410
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==35.0.0
cat > finding.py <<'PY'
from kubernetes import client, watch
import http.server
import json
import threading


class Server(http.server.BaseHTTPRequestHandler):
    """Answers each watch with the next of streams, and then ends it."""

    protocol_version = "HTTP/1.1"
    streams, asked = [], []

    def do_GET(self):
        self.asked.append(self.path.partition("?")[2])
        events = self.streams.pop(0) if self.streams else []
        body = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=listening.serve_forever, daemon=True).start()
configuration = client.Configuration()
configuration.host = f"http://127.0.0.1:{listening.server_port}"
api = client.CoreV1Api(client.ApiClient(configuration))


def event(name, version):
    meta = {"name": name, "resourceVersion": version}
    return {"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}}


def watched(*streams):
    Server.streams[:], Server.asked[:] = streams, []
    try:
        for _ in watch.Watch().stream(api.list_namespaced_config_map, "ns"):
            pass
    except client.ApiException as error:
        return str(error.status)
    return "ended"


expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
ended = watched([], [event("a", "5")])
print(f"quiet: {ended} after {len(Server.asked)} request", end="; ")
code = watched([event("a", "5")], [expired], [expired])
versions = [query.partition("resourceVersion=")[2].partition("&")[0] or "none" for query in Server.asked]
print(f"expired: versions asked: {', '.join(versions)}, then {code}")
PY
seen=$(own/bin/python finding.py)
wanted='quiet: ended after 1 request; expired: versions asked: none, 5, 5, then 410'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
