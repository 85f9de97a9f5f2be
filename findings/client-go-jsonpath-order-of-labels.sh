#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), util/jsonpath, which kubectl's -o jsonpath uses: all labels of an object.
# Behaviour: {.metadata.labels.*} and {..name} give the values in the order of a Go map, so one object gives another text at the
# next call, while {.metadata.labels}, whole, is sorted. One would have guessed the order of the names for each; a script that
# compares the text, or reads the first word, is right most of the time.
# Output seen: *: more than one text; ..name: more than one text; whole: one text
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"bytes"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "1", "b": "2", "c": "3"}},
		"spec":     map[string]any{"first": map[string]any{"name": "x"}, "second": map[string]any{"name": "y"}},
	}
	for _, asked := range [][2]string{{"*", "{.metadata.labels.*}"}, {"..name", "{..name}"}, {"whole", "{.metadata.labels}"}} {
		texts := map[string]bool{}
		for range 1000 {
			path, text := jsonpath.New("example"), bytes.Buffer{}
			must(path.Parse(asked[1]))
			must(path.Execute(&text, object))
			texts[text.String()] = true
		}
		said := "more than one text"
		if len(texts) == 1 {
			said = "one text"
		}
		fmt.Printf("%s: %s\n", asked[0], said)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='*: more than one text
..name: more than one text
whole: one text'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
