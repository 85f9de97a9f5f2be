#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (Go), MergeMergePatches: a patch that deletes a member, and one that sets it again.
# Behaviour: its comment says that the merged patch "yields the same as merging each merge patch to the document in succession".
# What the first deletes comes back: no merge patch can say "replace", and the function has no error for that.
# Output seen: in succession: {"a":{"b":1}}; merged: {"a":{"b":1,"c":2}}
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

func merged(merge func(first, second []byte) ([]byte, error), first, second []byte) []byte {
	made, err := merge(first, second)
	if err != nil {
		panic(err)
	}
	return made
}

func main() {
	document, first, second := []byte(`{"a":{"c":2}}`), []byte(`{"a":null}`), []byte(`{"a":{"b":1}}`)
	each := merged(jsonpatch.MergePatch, merged(jsonpatch.MergePatch, document, first), second)
	both := merged(jsonpatch.MergePatch, document, merged(jsonpatch.MergeMergePatches, first, second))
	fmt.Printf("in succession: %s; merged: %s\n", each, both)
}
GO
go mod init finding > /dev/null 2>&1
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='in succession: {"a":{"b":1}}; merged: {"a":{"b":1,"c":2}}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
