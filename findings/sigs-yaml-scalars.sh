#!/bin/sh
# sigs.k8s.io/yaml v1.6.0 (Go): its scalars are those of neither YAML 1.1 nor 1.2.
# Behaviour: y and off are booleans (1.1), 0o644 and 0644 are both 420 (1.2 and 1.1), 08 is 8 and 1e3 is 1000 (1.2),
# 22:22 is a text (not 1.1's base 60), 1_000 is 1000 (1.1), and a key 1e10 becomes the text "1e+10".
# Output seen: {"1e+10":"k","a":true,"b":false,"c":420,"d":420,"e":8,"f":1000,"g":"22:22","h":1000,"i":"2026-01-01"}
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
	text := "{1e10: k, a: y, b: off, c: 0o644, d: 0644, e: 08, f: 1e3, g: 22:22, h: 1_000, i: 2026-01-01}"
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(json))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/yaml@v1.6.0 > /dev/null 2>&1
seen=$(go run .)
wanted='{"1e+10":"k","a":true,"b":false,"c":420,"d":420,"e":8,"f":1000,"g":"22:22","h":1000,"i":"2026-01-01"}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
