#!/bin/sh
# gopkg.in/evanphx/json-patch.v4 v4.13.0 (Go; what kube-apiserver applies merge patches with): a list with a null in an object.
# Behaviour: RFC 7396 replaces lists as they are. What is written depends on what was there: over an object the null stays,
# over nothing, a list or a number the member is taken out.
# Output seen: over {}: [{"b":null}]; over nothing: [{}]; over []: [{}]; over 1: [{}]
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	written := []string{}
	for _, old := range []string{"{}", "nothing", "[]", "1"} {
		document := `{"a":` + old + `}`
		if old == "nothing" {
			document = "{}"
		}
		made, err := jsonpatch.MergePatch([]byte(document), []byte(`{"a":[{"b":null}]}`))
		if err != nil {
			panic(err)
		}
		list := strings.TrimSuffix(strings.TrimPrefix(string(made), `{"a":`), "}")
		written = append(written, fmt.Sprintf("over %s: %s", old, list))
	}
	fmt.Println(strings.Join(written, "; "))
}
GO
go mod init finding > /dev/null 2>&1
go get gopkg.in/evanphx/json-patch.v4@v4.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='over {}: [{"b":null}]; over nothing: [{}]; over []: [{}]; over 1: [{}]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
