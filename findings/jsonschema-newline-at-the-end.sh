#!/bin/sh
# jsonschema 4.26.0 (Python) and k8s.io/apiextensions-apiserver v0.36.3 (Go), which checks custom resources: one pattern,
# ^[a-z]+$.
# Behaviour: a text with a line break at its end, as "name: |" in YAML makes it, matches in Python, whose $ is also before a last
# line break, and not in Go. So a manifest that passes a check in Python is refused by the API server. One would have guessed that
# one JSON schema says one thing.
# Output seen: jsonschema: matches; API server: refused
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check jsonschema==4.26.0
cat > finding.py <<'PY'
import jsonschema

valid = jsonschema.Draft7Validator({"type": "string", "pattern": "^[a-z]+$"}).is_valid("team\n")
print(f"jsonschema: {'matches' if valid else 'refused'}")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

func main() {
	validator, _, err := validation.NewSchemaValidator(&apiextensions.JSONSchemaProps{Type: "string", Pattern: "^[a-z]+$"})
	if err != nil {
		panic(err)
	}
	said := "matches"
	if len(validation.ValidateCustomResource(nil, "team\n", validator)) > 0 {
		said = "refused"
	}
	fmt.Println("API server:", said)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiextensions-apiserver@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .)
wanted='jsonschema: matches
API server: refused'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
