#!/bin/sh
# k8s.io/client-go v0.36.3 (Go): which words are booleans in a kubeconfig.
# Behaviour: n and off are false and y is true, as no YAML 1.2 parser reads them; "true" in quotes is an error that fails
# the whole file, also in a cluster that no context uses.
# Output seen: n=false off=false y=true quoted=error unused=error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

func read(word, more string) string {
	cluster := "- name: %s\n  cluster: {server: https://h, disable-compression: %s}\n"
	text := "apiVersion: v1\nkind: Config\nclusters:\n" + fmt.Sprintf(cluster, "a", word) + more
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return "error"
	}
	return fmt.Sprint(config.Clusters["a"].DisableCompression)
}

func main() {
	unused := "- name: b\n  cluster: {server: https://h, disable-compression: \"true\"}\n"
	fmt.Printf("n=%s off=%s y=%s quoted=%s unused=%s\n",
		read("n", ""), read("off", ""), read("y", ""), read(`"true"`, ""), read("true", unused))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='n=false off=false y=true quoted=error unused=error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
