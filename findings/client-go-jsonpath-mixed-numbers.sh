#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), util/jsonpath, which kubectl and the printer columns of CRDs use: filters on numbers.
# Behaviour: the type of the literal decides what it may be compared with: "> 0" is an error for a list in which one value has
# a fraction, "> 0.0" one for a list in which one has none, so no filter fits a field that has both.
# Output seen: [1 2] >0: 1 2; [1 2] >0.0: error; [1 0.5] >0: error; [1 0.5] >0.0: error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

func chosen(list, literal string) string {
	var object any
	if err := json.Unmarshal([]byte(list), &object); err != nil {
		panic(err)
	}
	path := jsonpath.New("numbers").AllowMissingKeys(true)
	if err := path.Parse("{.items[?(@.n>" + literal + ")].n}"); err != nil {
		panic(err)
	}
	var written bytes.Buffer
	if err := path.Execute(&written, object); err != nil {
		return "error"
	}
	return written.String()
}

func main() {
	whole, mixed := `{"items":[{"n":1},{"n":2}]}`, `{"items":[{"n":1},{"n":0.5}]}`
	fmt.Printf("[1 2] >0: %s; [1 2] >0.0: %s; [1 0.5] >0: %s; [1 0.5] >0.0: %s\n",
		chosen(whole, "0"), chosen(whole, "0.0"), chosen(mixed, "0"), chosen(mixed, "0.0"))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='[1 2] >0: 1 2; [1 2] >0.0: error; [1 0.5] >0: error; [1 0.5] >0.0: error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
