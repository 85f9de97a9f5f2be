#!/bin/sh
# k8s.io/apiserver v0.36.3 (Go), the CEL library of versions, by which device classes choose: versions of GPU drivers and
# clusters.
# Behaviour: NVIDIA's driver 535.104.05 and CUDA's 12.4 are no versions, as a number may not begin with 0 and three are wanted (a
# second argument, true, takes both); 570.86.10 is one. A version of GKE is less than the one that it is made of, as what follows
# a hyphen is a pre-release; of k3s, behind a plus, it is not. One would have guessed that both are at least 1.33.4.
# Output seen: 535.104.05: false, true with normalization; 12.4: false; 570.86.10: true; gke: less; k3s: not less
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
	"k8s.io/apiserver/pkg/cel/library"
)

func main() {
	env, err := cel.NewEnv(library.SemverLib(library.SemverVersion(1)))
	if err != nil {
		panic(err)
	}
	for _, text := range []string{
		`isSemver("535.104.05")`, `isSemver("535.104.05", true)`, `isSemver("12.4")`, `isSemver("570.86.10")`,
		`semver("1.33.4-gke.1134000").isLessThan(semver("1.33.4"))`, `semver("1.33.4+k3s1").isLessThan(semver("1.33.4"))`,
	} {
		ast, issues := env.Compile(text)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{})
		if err != nil {
			panic(err)
		}
		fmt.Println(text, value)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apiserver@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='isSemver("535.104.05") false
isSemver("535.104.05", true) true
isSemver("12.4") false
isSemver("570.86.10") true
semver("1.33.4-gke.1134000").isLessThan(semver("1.33.4")) true
semver("1.33.4+k3s1").isLessThan(semver("1.33.4")) false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
