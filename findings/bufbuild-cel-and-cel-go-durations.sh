#!/bin/sh
# @bufbuild/cel 0.6.1 (JavaScript) and github.com/google/cel-go v0.27.0, on which API servers build: durations and numbers.
# Behaviour: a duration as an int is seconds in JavaScript and nanoseconds in Go, and its getMilliseconds() is what is left beyond
# whole seconds there and the whole duration here, so 1500ms are 500 or 1500. JavaScript reads a text with a space or 0x10 as an
# int, which is an error in Go, and writes 1e8 as 100000000, in Go 1e+08. Division, large numbers and errors are alike. One would
# have guessed one answer, as both name one specification; a rule on a timeout that was tried in a page says something else in a
# cluster.
# Output seen: bufbuild: 1 500 16 1 100000000; cel-go: 1500000000 1500 error error 1e+08
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit @bufbuild/cel@0.6.1 > /dev/null
cat > rules <<'CEL'
int(duration("1500ms"))
duration("1500ms").getMilliseconds()
int("0x10")
int(" 1")
string(100000000.0)
CEL
cat > finding.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { run } from '@bufbuild/cel';

const answers = readFileSync('rules', 'utf8').trim().split('\n').map((rule) => run(rule));
console.log('bufbuild:', answers.map((answer) => (answer instanceof Error ? 'error' : String(answer))).join(' '));
JS
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	env := must(cel.NewEnv(cel.CrossTypeNumericComparisons(true)))
	fmt.Print("cel-go:")
	for _, rule := range strings.Split(strings.TrimSpace(string(must(os.ReadFile("rules")))), "\n") {
		checked, issues := env.Compile(rule)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		answer, _, err := must(env.Program(checked)).Eval(map[string]any{})
		if err != nil {
			fmt.Print(" error")
			continue
		}
		fmt.Print(" ", answer.Value())
	}
	fmt.Println()
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/google/cel-go@v0.27.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(node finding.mjs; go run .)
wanted='bufbuild: 1 500 16 1 100000000
cel-go: 1500000000 1500 error error 1e+08'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
