#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), kr8s 0.20.15 and lightkube 1.0.1 (Python) and @kubernetes/client-node 1.4.0 (JavaScript):
# KUBECONFIG with two files that both call their cluster "kind", as tools do that make clusters by one pattern.
# Behaviour: client-go, and kubectl with it, takes context, cluster and user of the first file. kr8s takes the context and the
# user of the first and the cluster of the second, so the token of one cluster is sent to the other. client-node raises an error
# for a name that is there twice, lightkube one for each KUBECONFIG of two files, which it takes for one name. One would have
# guessed that all work on the cluster that kubectl shows; each file alone is read by all alike.
# Output seen: client-go: first, token first; kr8s: second, token first; lightkube: ConfigError; client-node: Duplicate cluster:
# kind
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kr8s==0.20.15 lightkube==1.0.1
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 > /dev/null
for which in first second; do
    cat > "$which" <<YAML
apiVersion: v1
kind: Config
current-context: $which
contexts: [{name: $which, context: {cluster: kind, user: $which}}]
clusters: [{name: kind, cluster: {server: "https://$which.example"}}]
users: [{name: $which, user: {token: $which}}]
YAML
done
cat > finding.py <<'PY'
import asyncio

from kr8s._auth import KubeAuth
from lightkube import KubeConfig
from lightkube.core.exceptions import ConfigError


async def by_kr8s():
    auth = await KubeAuth()
    return f"{auth.server}, token {auth.token}"


def by_lightkube():
    try:
        config = KubeConfig.from_env().get()
    except ConfigError:
        return "ConfigError"
    return f"{config.cluster.server}, token {config.user.token}"


print(f"kr8s: {asyncio.run(by_kr8s())}")
print(f"lightkube: {by_lightkube()}")
PY
cat > finding.mjs <<'JS'
import { KubeConfig } from '@kubernetes/client-node';

const config = new KubeConfig();
try {
  config.loadFromDefault();
  console.log(`client-node: ${config.getCurrentCluster().server}, token ${config.getCurrentUser().token}`);
} catch (error) {
  console.log(`client-node: ${error.message}`);
}
JS
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		panic(err)
	}
	fmt.Printf("client-go: %s, token %s\n", config.Host, config.BearerToken)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
for KUBECONFIG in first second first:second; do
    export KUBECONFIG
    echo "$KUBECONFIG"
    go run .
    own/bin/python finding.py
    node finding.mjs
done > answers
seen=$(cat answers)
wanted='first
client-go: https://first.example, token first
kr8s: https://first.example, token first
lightkube: https://first.example, token first
client-node: https://first.example, token first
second
client-go: https://second.example, token second
kr8s: https://second.example, token second
lightkube: https://second.example, token second
client-node: https://second.example, token second
first:second
client-go: https://first.example, token first
kr8s: https://second.example, token first
lightkube: ConfigError
client-node: Duplicate cluster: kind'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
