#!/bin/sh
# sigs.k8s.io/yaml v1.6.0 (Go), UnmarshalStrict: a file of two documents, and names in other letters.
# Behaviour: the second document is left out without an error, also in what is called strict (PyYAML's safe_load refuses such a
# text); and keys are found whatever the case of their letters, so "Spec" and "REPLICAS" are set, which kubectl and API
# servers, by sigs.k8s.io/json, take for unknown fields.
# Output seen: two documents: <nil> 1; other letters: <nil> 7
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

type object struct {
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

func read(text string) string {
	var read object
	err := yaml.UnmarshalStrict([]byte(text), &read)
	return fmt.Sprint(err, " ", read.Spec.Replicas)
}

func main() {
	two, letters := "spec: {replicas: 1}\n---\nspec: {replicas: 2}\n", "Spec: {REPLICAS: 7}\n"
	fmt.Printf("two documents: %s; other letters: %s\n", read(two), read(letters))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/yaml@v1.6.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='two documents: <nil> 1; other letters: <nil> 7'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
