#!/bin/sh
# sigs.k8s.io/yaml v1.6.0 (Go), by which kubectl and API servers read manifests: the directive that names YAML 1.2.
# Behaviour: a document that begins with "%YAML 1.2", the standard's current version, is refused as incompatible; with
# "%YAML 1.1" it is read.
# Output seen: yaml: found incompatible YAML document, then {"a":true}
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

func main() {
	for _, version := range []string{"1.2", "1.1"} {
		json, err := yaml.YAMLToJSON([]byte("%YAML " + version + "\n---\na: true\n"))
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(string(json))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/yaml@v1.6.0 > /dev/null 2>&1
seen=$(go run .)
wanted='yaml: found incompatible YAML document
{"a":true}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
