#!/bin/sh
# github.com/wI2L/jsondiff v0.7.0 (Go), which writes JSON patches between two objects, as for admission webhooks: its option
# Factorize, which turns what is there already into a copy or a move.
# Behaviour: a list of one value counts as that value: a container that has the command "train" and gets args ["train"] is patched
# by a copy, and args is the text "train", which no API server takes. Without the option the patch is right. One would have guessed
# that the patch makes the second object of the first, with each option.
# Output seen: plain: {"args":["train"],"name":"train"}; Factorize: {"args":"train","name":"train"}
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/wI2L/jsondiff"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	before, after := []byte(`{"name":"train"}`), []byte(`{"name":"train","args":["train"]}`)
	for name, options := range map[string][]jsondiff.Option{"plain": nil, "Factorize": {jsondiff.Factorize()}} {
		patch := must(json.Marshal(must(jsondiff.CompareJSON(before, after, options...))))
		fmt.Printf("%s: %s\n", name, must(must(jsonpatch.DecodePatch(patch)).Apply(before)))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/wI2L/jsondiff@v0.7.0 gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . | sort -r)
wanted='plain: {"args":["train"],"name":"train"}
Factorize: {"args":"train","name":"train"}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
