#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), DefaultUnstructuredConverter: an int64 for a field that is an int32.
# Behaviour: JSON that holds 4294967297 (2^32 + 1) for spec.replicas is refused; the same object as a map is converted without
# an error, and replicas is 1. (A controller that reads kinds as unstructured objects and converts them takes this way.)
# Output seen: json: error; converter: 1 <nil>
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func main() {
	var read, converted appsv1.Deployment
	said := "read"
	if err := json.Unmarshal([]byte(`{"spec":{"replicas":4294967297}}`), &read); err != nil {
		said = "error"
	}
	content := map[string]any{"spec": map[string]any{"replicas": int64(4294967297)}}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &converted)
	fmt.Printf("json: %s; converter: %d %v\n", said, *converted.Spec.Replicas, err)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='json: error; converter: 1 <nil>'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
