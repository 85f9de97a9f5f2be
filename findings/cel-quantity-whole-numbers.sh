#!/bin/sh
# k8s.io/apiserver v0.36.3 (Go), the CEL library of quantities, as in rules of CRDs and admission policies: isInteger.
# Behaviour: how a number is written decides, not what it is: 1000m, 1.0, 1.5Ki and 1Ei are no integers (asInteger is an error),
# 1.5k and 1E are. One would have guessed that it asks for a whole number; a custom resource keeps a quantity as its author wrote
# it, so a rule on a quota refuses "1000m" and takes "1".
# Output seen: 1 true; 1000m false; 1.0 false; 1.5k true; 1.5Ki false; 1E true; 1Ei false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/cel/library"
)

func main() {
	env, err := cel.NewEnv(library.Quantity(), cel.Variable("text", cel.StringType))
	if err != nil {
		panic(err)
	}
	ast, issues := env.Compile(`quantity(text).isInteger()`)
	if issues.Err() != nil {
		panic(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"1", "1000m", "1.0", "1.5k", "1.5Ki", "1E", "1Ei"} {
		whole, _, err := program.Eval(map[string]any{"text": text})
		if err != nil {
			panic(err)
		}
		quantity := resource.MustParse(text)
		fmt.Printf("%s: isInteger %v, Value %d\n", text, whole, quantity.Value())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiserver@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='1: isInteger true, Value 1
1000m: isInteger false, Value 1
1.0: isInteger false, Value 1
1.5k: isInteger true, Value 1500
1.5Ki: isInteger false, Value 1536
1E: isInteger true, Value 1000000000000000000
1Ei: isInteger false, Value 1152921504606846976'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
