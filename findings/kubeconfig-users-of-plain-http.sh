#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), kubernetes 37.0.2 (Python) and @kubernetes/client-node 1.4.0 (JavaScript): a kubeconfig of a user
# with a token and a server at http://, as of a proxy on the same machine.
# Behaviour: client-go, and kubectl with it, leaves out the whole user where the server is not https, and says nothing. Python
# sends the token, and JavaScript is an error, which goes away with insecure-skip-tls-verify, though there is no TLS to skip. One
# would have guessed one answer for one file; what works in Python behind a proxy that checks tokens is Unauthorized for a
# controller in Go.
# Output seen: client-go: None; kubernetes: Bearer one; client-node: HTTP protocol is not allowed when skipTLSVerify is not set or
# false
set -eu
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
server=
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 > /dev/null
cat > server.py <<'PY'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with open("tokens", "a") as tokens:
            print(self.headers["Authorization"], file=tokens)
        body = b'{"apiVersion": "v1", "kind": "NamespaceList", "metadata": {}, "items": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Path("port.new").write_text(str(server.server_port))
Path("port.new").rename("port")
server.serve_forever()
PY
cat > finding.py <<'PY'
from kubernetes import client, config

config.load_kube_config("config.yaml")
client.CoreV1Api().list_namespace()
PY
cat > finding.mjs <<'JS'
import { appendFileSync } from 'node:fs';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
config.loadFromFile('config.yaml');
try {
  await config.makeApiClient(CoreV1Api).listNamespace();
} catch (error) {
  appendFileSync('tokens', `${error.message}\n`);
}
JS
cat > main.go <<'GO'
package main

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", "config.yaml")
	if err != nil {
		panic(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	response, err := client.Get(config.Host + "/api/v1/namespaces")
	if err != nil {
		panic(err)
	}
	_ = response.Body.Close()
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
python3 server.py &
server=$!
while [ ! -e port ]; do sleep 0.1; done
cat > config.yaml <<YAML
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: "http://127.0.0.1:$(cat port)"}}]
users: [{name: one, user: {token: one}}]
YAML
go run .
own/bin/python finding.py
node finding.mjs
seen=$(printf '%s\n' client-go: kubernetes: client-node: | paste -d ' ' - tokens)
wanted='client-go: None
kubernetes: Bearer one
client-node: HTTP protocol is not allowed when skipTLSVerify is not set or false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
