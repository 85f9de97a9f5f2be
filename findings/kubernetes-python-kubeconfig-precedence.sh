#!/bin/sh
# kubernetes 37.0.2 (Python) and k8s.io/client-go v0.36.3 (Go): KUBECONFIG with two files, and a user with a token and a tokenFile.
# Behaviour: client-go takes the current-context of the first file, as kubectl does, Python that of the last one, so a program
# works on another cluster than kubectl shows. Of a user with both Python takes the token, client-go the file, which is the one
# that is renewed.
# Output seen: python: two, inline; client-go: one, from-file
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
printf from-file > token
for name in one two; do cat > "$name" <<YAML
apiVersion: v1
kind: Config
current-context: $name
clusters: [{name: $name, cluster: {server: "https://$name.example.com"}}]
users: [{name: $name, user: {token: inline, tokenFile: $folder/token}}]
contexts: [{name: $name, context: {cluster: $name, user: $name}}]
YAML
done
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2
cat > finding.py <<'PY'
import os

from kubernetes import client, config

configuration = client.Configuration()
config.load_kube_config(os.environ["KUBECONFIG"], client_configuration=configuration)
_, active = config.list_kube_config_contexts(os.environ["KUBECONFIG"])
token = configuration.api_key["BearerToken"].removeprefix("Bearer ")
print(f"python: {active['name']}, {token}", end="; ")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

func main() {
	rules, overrides := clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	raw, err := loaded.RawConfig()
	if err != nil {
		panic(err)
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		panic(err)
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		read, err := transport.NewCachedFileTokenSource(config.BearerTokenFile).Token()
		if err != nil {
			panic(err)
		}
		token = read.AccessToken
	}
	fmt.Printf("client-go: %s, %s\n", raw.CurrentContext, token)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
export KUBECONFIG="$folder/one:$folder/two"
seen="$(own/bin/python finding.py)$(go run .)"
wanted='python: two, inline; client-go: one, from-file'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
