#!/bin/sh
# sigs.k8s.io/cli-utils v0.37.2 (Go), kstatus, by which Helm 4 and Flux wait: a custom resource that no controller has seen.
# Behaviour: without a status it is Current, which is "done"; with the condition Ready=False it is InProgress, with
# Succeeded=Unknown, Suspended=True or phase Pending alone it is Current again.
# Output seen: Current InProgress Current Current Current
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	for _, said := range []string{
		`{}`,
		`{"conditions":[{"type":"Ready","status":"False"}]}`,
		`{"conditions":[{"type":"Succeeded","status":"Unknown"}]}`,
		`{"conditions":[{"type":"Suspended","status":"True"}]}`,
		`{"phase":"Pending"}`,
	} {
		obj := &unstructured.Unstructured{}
		text := `{"apiVersion":"example.com/v1","kind":"Training","metadata":{"name":"a","generation":1},"status":` + said + `}`
		if err := obj.UnmarshalJSON([]byte(text)); err != nil {
			panic(err)
		}
		found, err := status.Compute(obj)
		if err != nil {
			panic(err)
		}
		fmt.Print(found.Status, " ")
	}
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/cli-utils@v0.37.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run . | sed 's/ *$//')
wanted='Current InProgress Current Current Current'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
