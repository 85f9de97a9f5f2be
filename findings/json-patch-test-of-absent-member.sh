#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (Go; what kube-apiserver applies JSON patches with): members that are absent.
# Behaviour: a test of an absent member against null holds, though RFC 6902 wants the target of a test to exist, and a copy
# from an absent member writes null; remove of it is an error, as the RFC says.
# Output seen: test: {"a":1}; copy: {"a":1,"b":null}; remove: error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func apply(step string) string {
	patch, err := jsonpatch.DecodePatch([]byte("[" + step + "]"))
	if err != nil {
		panic(err)
	}
	changed, err := patch.Apply([]byte(`{"a":1}`))
	if err != nil {
		return "error"
	}
	return string(changed)
}

func main() {
	fmt.Printf("test: %s; copy: %s; remove: %s\n",
		apply(`{"op":"test","path":"/b","value":null}`),
		apply(`{"op":"copy","from":"/x","path":"/b"}`),
		apply(`{"op":"remove","path":"/b"}`))
}
GO
go mod init finding > /dev/null 2>&1
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
seen=$(go run .)
wanted='test: {"a":1}; copy: {"a":1,"b":null}; remove: error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
