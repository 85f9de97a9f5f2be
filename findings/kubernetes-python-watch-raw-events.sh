#!/bin/sh
# kubernetes 35.0.0 (Python), watch.Watch().stream(..., deserialize=False): events as dicts, which is what large lists want.
# Behaviour: an ERROR event, as the expired version that each watch meets some day, is a KeyError instead of an ApiException;
# and when the server ends the stream the loop ends after its first request, though it has seen a version to go on from.
# Output seen: models: error: ApiException, ended: 2 requests or more; dicts: error: KeyError, ended: 1 request
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


def watched(stream, **options):
    Server.streams[:], Server.asked[:] = [stream, [{"type": "ADDED", "object": config_map("6")}]], []
    try:
        for event in watch.Watch().stream(api.list_namespaced_config_map, "ns", **options):
            if event["raw_object" if "raw_object" in event else "object"]["metadata"]["resourceVersion"] == "6":
                return "2 requests or more"
    except (client.ApiException, KeyError) as error:
        return type(error).__name__
    return f"{len(Server.asked)} request"


def config_map(version):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": version}}


failed = [{"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "Failed", "message": "no"}}]
ended = [{"type": "ADDED", "object": config_map("5")}]
models = f"models: error: {watched(failed)}, ended: {watched(ended)}"
print(f"{models}; dicts: error: {watched(failed, deserialize=False)}, ended: {watched(ended, deserialize=False)}")
PY
seen=$(own/bin/python finding.py)
wanted='models: error: ApiException, ended: 2 requests or more; dicts: error: KeyError, ended: 1 request'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
