#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), StrategicMergePatch: a map that is to be replaced where there is none.
# Behaviour: {"labels": {"$patch": "replace", "z": "y"}} sets the labels to z=y where the object has labels. Where it has
# none, the whole map is dropped with its directive: the object has none afterwards either, and nothing says so.
# Output seen: {"metadata":{"name":"a"}} and {"metadata":{"labels":{"z":"y"},"name":"a"}}
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func main() {
	patch := []byte(`{"metadata":{"labels":{"$patch":"replace","z":"y"}}}`)
	for _, original := range []string{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","labels":{"x":"y"}}}`} {
		made, err := strategicpatch.StrategicMergePatch([]byte(original), patch, &corev1.ConfigMap{})
		if err != nil {
			panic(err)
		}
		fmt.Println(string(made))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='{"metadata":{"name":"a"}}
{"metadata":{"labels":{"z":"y"},"name":"a"}}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
