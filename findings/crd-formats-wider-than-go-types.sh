#!/bin/sh
# k8s.io/apiextensions-apiserver v0.36.3 (Go), by which API servers check custom resources: the formats duration and date-time.
# Behaviour: both admit texts that metav1.Duration and metav1.Time, the types of such fields in Go, cannot read: "1.5d", ISO's
# "PT1H30M", a sentence that names hours, and RFC 3339 in small letters. One such object fails the list of all for a typed client.
# Output seen: 90m: stored, read; 1.5d: stored, error; PT1H30M: stored, error; in about 2 hours: stored, error; 3: refused,
# error; 2026-01-02T03:04:05Z: stored, read; 2026-01-02t03:04:05z: stored, error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func stored(format, text string) string {
	schema := apiextensions.JSONSchemaProps{Type: "string", Format: format}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		panic(err)
	}
	if len(validation.ValidateCustomResource(nil, text, validator)) > 0 {
		return "refused"
	}
	return "stored"
}

func read(text string, into any) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	if json.Unmarshal(quoted, into) != nil {
		return "error"
	}
	return "read"
}

func main() {
	for _, text := range []string{"90m", "1.5d", "PT1H30M", "in about 2 hours", "3"} {
		fmt.Printf("%s: %s, %s\n", text, stored("duration", text), read(text, &metav1.Duration{}))
	}
	for _, text := range []string{"2026-01-02T03:04:05Z", "2026-01-02t03:04:05z"} {
		fmt.Printf("%s: %s, %s\n", text, stored("date-time", text), read(text, &metav1.Time{}))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='90m: stored, read
1.5d: stored, error
PT1H30M: stored, error
in about 2 hours: stored, error
3: refused, error
2026-01-02T03:04:05Z: stored, read
2026-01-02t03:04:05z: stored, error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
