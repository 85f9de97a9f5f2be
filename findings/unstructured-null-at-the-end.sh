#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), unstructured.NestedString and its like: a null in an object, as merge patches leave them.
# Behaviour: a null on the way counts as absent (no error), one at the end is an error, as of a wrong type; API servers treat
# both alike, as if the field were not there.
# Output seen: on the way: false <nil>; at the end: false .spec.a accessor error: <nil> is of the type <nil>, expected string
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	object := map[string]any{"status": nil, "spec": map[string]any{"a": nil}}
	_, way, wayErr := unstructured.NestedString(object, "status", "phase")
	_, end, endErr := unstructured.NestedString(object, "spec", "a")
	fmt.Printf("on the way: %t %v; at the end: %t %v\n", way, wayErr, end, endErr)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='on the way: false <nil>; at the end: false .spec.a accessor error: <nil> is of the type <nil>, expected string'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
