#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), util/yaml: a YAML stream whose second document begins on the line of its marker "---".
# Behaviour: YAML allows that. NewDocumentDecoder loses what stands there, without an error: {b: 2} is gone.
# NewYAMLReader refuses the stream.
# Output seen: decoder: a: 1, c: 3; reader: invalid Yaml document separator: {b: 2}
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

const text = "a: 1\n--- {b: 2}\n---\nc: 3\n"

func main() {
	decoder, parts, buffer := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))), []string{}, make([]byte, 100)
	for {
		size, err := decoder.Read(buffer)
		if err != nil {
			break
		}
		parts = append(parts, strings.TrimPrefix(strings.TrimSpace(string(buffer[:size])), "---\n"))
	}
	_, err := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))).Read()
	fmt.Printf("decoder: %s; reader: %v\n", strings.Join(parts, ", "), err)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='decoder: a: 1, c: 3; reader: invalid Yaml document separator: {b: 2}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
