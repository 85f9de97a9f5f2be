#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), kubernetes 37.0.2 and lightkube 1.0.1 (Python) and @kubernetes/client-node 1.4.0 (JavaScript): a
# kubeconfig whose exec plugin gives a token without expirationTimestamp, as it may, and a server that no longer takes the first
# token at the second of four requests.
# Behaviour: client-go shows that one refusal and asks the plugin again for the next request; lightkube asks again at once, so
# nobody sees it; client-node runs the plugin anew for each request; kubernetes for Python never runs it a second time, so each
# later request is refused until the process ends. One would have guessed that a refused token is fetched anew, as by kubectl; a
# controller in Python works until the first rotation. (lightkube takes v1beta1 and no v1, so that is what the plugin speaks.)
# Output seen: client-go: 200 401 200 200, 2 runs; client-node: 200 200 200 200, 4 runs; kubernetes: 200 401 401 401, 1 run;
# lightkube: 200 200 200 200, 2 runs
set -eu
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
server=
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2 lightkube==1.0.1 trustme==1.2.1
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 > /dev/null
cat > plugin.sh <<'PLUGIN'
run=$(($(cat "$1.runs" 2> /dev/null || echo 0) + 1))
echo "$run" > "$1.runs"
echo '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": "'"$1-$run"'"}}'
PLUGIN
cat > server.py <<'PY'
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

used = set()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        token = self.headers["Authorization"]
        revoked = token in used and token.endswith("-1")
        used.add(token)
        kind = "Status" if revoked else "NamespaceList"
        body = ('{"apiVersion": "v1", "kind": "%s", "metadata": {}, "items": []}' % kind).encode()
        self.send_response(401 if revoked else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


authority = trustme.CA()
authority.cert_pem.write_to_path("authority.pem")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
authority.issue_cert("127.0.0.1").configure_cert(context)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
Path("port.new").write_text(str(server.server_port))
Path("port.new").rename("port")
server.serve_forever()
PY
cat > with_kubernetes.py <<'PY'
from kubernetes import client, config

config.load_kube_config("kubernetes.yaml")
for _ in range(4):
    try:
        print(client.CoreV1Api().list_namespace_with_http_info()[1])
    except client.ApiException as error:
        print(error.status)
PY
cat > with_lightkube.py <<'PY'
from lightkube import ApiError, Client, KubeConfig
from lightkube.resources.core_v1 import Namespace

api = Client(config=KubeConfig.from_file("lightkube.yaml"))
for _ in range(4):
    try:
        list(api.list(Namespace))
        print(200)
    except ApiError as error:
        print(error.response.status_code)
PY
cat > finding.mjs <<'JS'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromFile('client-node.yaml');
const api = config.makeApiClient(CoreV1Api);
for (let request = 0; request < 4; request++) {
  try {
    await api.listNamespace();
    console.log(200);
  } catch (error) {
    console.log(error.code);
  }
}
JS
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", "client-go.yaml")
	if err != nil {
		panic(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	for range 4 {
		response, err := client.Get(config.Host + "/api/v1/namespaces")
		if err != nil {
			panic(err)
		}
		_ = response.Body.Close()
		fmt.Println(response.StatusCode)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
own/bin/python server.py &
server=$!
while [ ! -e port ]; do sleep 0.1; done
for client in client-go client-node kubernetes lightkube; do
    cat > "$client.yaml" <<YAML
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: "https://127.0.0.1:$(cat port)", certificate-authority: authority.pem}}]
users:
- name: one
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: sh
      args: [plugin.sh, $client]
YAML
done
go run . > client-go
node finding.mjs > client-node
own/bin/python with_kubernetes.py > kubernetes
own/bin/python with_lightkube.py > lightkube
seen=$(for client in client-go client-node kubernetes lightkube; do
    echo "$client: $(paste -s -d ' ' "$client"), runs of the plugin: $(cat "$client.runs")"
done)
wanted='client-go: 200 401 200 200, runs of the plugin: 2
client-node: 200 200 200 200, runs of the plugin: 4
kubernetes: 200 401 401 401, runs of the plugin: 1
lightkube: 200 200 200 200, runs of the plugin: 2'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
