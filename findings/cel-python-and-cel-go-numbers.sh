#!/bin/sh
# cel-python 0.5.0 (Python, import celpy) and cel-go v0.27.0 with CrossTypeNumericComparisons, as Kubernetes sets it: one object.
# Behaviour: cel-python compares an int with no double and with no null, so what holds in a cluster is an error there; and
# the fraction of a second is lost in the text of a time.
# Output seen: cel-python: error error error 2026-01-02T03:04:05Z; cel-go: true true false 2026-01-02T03:04:05.25Z
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check cel-python==0.5.0
cat > finding.py <<'PY'
import sys

import celpy


def value(text):
    environment = celpy.Environment()
    try:
        return str(environment.program(environment.compile(text)).evaluate(celpy.json_to_cel({"o": {"n": 2}})))
    except celpy.CELEvalError:
        return "error"


print("cel-python:", *map(value, sys.argv[1:]), end="; ")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
)

func main() {
	environment, err := cel.NewEnv(cel.Variable("o", cel.DynType), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		panic(err)
	}
	fmt.Print("cel-go:")
	for _, text := range os.Args[1:] {
		tree, issues := environment.Compile(text)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := environment.Program(tree)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{"o": map[string]any{"n": int64(2)}})
		if err != nil {
			fmt.Print(" error")
			continue
		}
		fmt.Print(" ", value.Value())
	}
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/google/cel-go@v0.27.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- 'o.n > 1.5' 'o.n == 2.0' 'o.n == null' "string(timestamp('2026-01-02T03:04:05.250Z'))"
seen="$(own/bin/python finding.py "$@")$(go run . "$@")"
wanted='cel-python: error error error 2026-01-02T03:04:05Z; cel-go: true true false 2026-01-02T03:04:05.25Z'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
