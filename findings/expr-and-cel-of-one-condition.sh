#!/bin/sh
# github.com/expr-lang/expr v1.17.8, the language of {{= }} in Argo's workflows, and github.com/google/cel-go v0.27.0 (Go), by
# which API servers check objects: one condition.
# Behaviour: the texts are alike, and each of these is read by both. 7 / 2 is 3.5 in expr and 3 in CEL; a label that is not there
# is nil in expr, so that the comparison is false, and an error in CEL; one more than the largest integer wraps around without a
# word in expr, and is an error in CEL; [-1] is the last entry in expr, and an error in CEL. One would have guessed one answer, or
# an error for what differs; a rule on half of the workers, or on an absent label, says something else once it moves to a cluster.
# Output seen: 7 / 2: 3.5, 3; labels.rack == "x": false, error; largest + 1: -9223372036854775808, error; hosts[-1]: b, error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"math"

	"github.com/expr-lang/expr"
	"github.com/google/cel-go/cel"
)

func said(value any, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(value)
}

func inCEL(text string, known map[string]any) (any, error) {
	env, err := cel.NewEnv(cel.Variable("workers", cel.IntType), cel.Variable("largest", cel.IntType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("hosts", cel.ListType(cel.StringType)))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		panic(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	value, _, err := program.Eval(known)
	if err != nil {
		return nil, err
	}
	return value.Value(), nil
}

func main() {
	known := map[string]any{
		"workers": 7, "largest": math.MaxInt64,
		"labels": map[string]string{"zone": "a"}, "hosts": []string{"a", "b"},
	}
	for _, text := range []string{"workers / 2", `labels.zone == "a"`, `labels.rack == "x"`, "largest + 1", "hosts[-1]"} {
		program, err := expr.Compile(text)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: expr %s, CEL %s\n", text, said(expr.Run(program, known)), said(inCEL(text, known)))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/expr-lang/expr@v1.17.8 github.com/google/cel-go@v0.27.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='workers / 2: expr 3.5, CEL 3
labels.zone == "a": expr true, CEL true
labels.rack == "x": expr false, CEL error
largest + 1: expr -9223372036854775808, CEL error
hosts[-1]: expr b, CEL error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
