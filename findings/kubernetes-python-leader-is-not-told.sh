#!/bin/sh
# kubernetes 35.0.0 (Python), leaderelection with its ConfigMapLock: a leader whose API server cannot be reached any more.
# Behaviour: an answer that is an error is tried again until renew_deadline, then onstopped_leading is called. A connection that
# is refused raises out of run() at once: onstopped_leading is never called, and the thread of onstarted_leading leads on.
# Output seen: run: MaxRetryError; leading: True; told to stop: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==35.0.0
cat > finding.py <<'PY'
import http.server
import json
import threading

from kubernetes import client
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

leading, told, done = threading.Event(), threading.Event(), threading.Event()


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(404, {"kind": "Status", "code": 404})

    def do_POST(self):
        self.answer(201, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, code, content):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def lead():
    leading.set()
    listening.shutdown()
    listening.server_close()
    done.wait()


listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=listening.serve_forever, daemon=True).start()
configuration = client.Configuration()
configuration.host = f"http://127.0.0.1:{listening.server_port}"
client.Configuration.set_default(configuration)
election = leaderelection.LeaderElection(
    electionconfig.Config(
        ConfigMapLock("lock", "ns", "first"), lease_duration=3, renew_deadline=2, retry_period=1,
        onstarted_leading=lead, onstopped_leading=told.set,
    )
)
try:
    election.run()
    said = "returned"
except Exception as error:
    said = type(error).__name__
print(f"run: {said}; leading: {leading.is_set()}; told to stop: {told.is_set()}")
done.set()
PY
seen=$(own/bin/python finding.py)
wanted='run: MaxRetryError; leading: True; told to stop: False'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
