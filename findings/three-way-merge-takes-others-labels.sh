#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), jsonmergepatch and strategicpatch, of which kubectl apply makes its patches: the last label of
# a manifest is taken out, with its key "labels" or without it, of an object that a controller has labelled as well.
# Behaviour: while "labels: {}" is left, the patch takes away the own label alone. Without the key it is {"labels": null}, and the
# controller's labels go with it, of custom resources as of Jobs. One would have guessed that apply removes what it had set; a
# queue's or an owner's label is gone, as are the finalizers of others with the last own one.
# Output seen: labels: {}: {"metadata":{"labels":{"a":null}}}; no labels: {"metadata":{"labels":null}}, of both kinds
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func main() {
	meta, err := strategicpatch.NewPatchMetaFromStruct(batch.Job{})
	if err != nil {
		panic(err)
	}
	applied := []byte(`{"metadata":{"name":"x","labels":{"a":"1"}}}`)
	live := []byte(`{"metadata":{"name":"x","labels":{"a":"1","of-a-controller":"2"}}}`)
	for _, manifest := range []string{`{"metadata":{"name":"x","labels":{}}}`, `{"metadata":{"name":"x"}}`} {
		custom, err := jsonmergepatch.CreateThreeWayJSONMergePatch(applied, []byte(manifest), live)
		if err != nil {
			panic(err)
		}
		job, err := strategicpatch.CreateThreeWayMergePatch(applied, []byte(manifest), live, meta, true)
		if err != nil {
			panic(err)
		}
		fmt.Printf("custom: %s; Job: %s\n", custom, job)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 k8s.io/api@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='custom: {"metadata":{"labels":{"a":null}}}; Job: {"metadata":{"labels":{"a":null}}}
custom: {"metadata":{"labels":null}}; Job: {"metadata":{"labels":null}}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
