#!/bin/sh
# helm.sh/helm/v3 v3.18.6 (Go), strvals, which reads --set: numbers.
# Behaviour: whole numbers become numbers, 0.5, 1e3 and 08 texts, so a chart whose schema wants a number refuses --set factor=0.5,
# though the same in a values file is taken. (--set-json takes it.)
# Output seen: 5: int64; 0.5: string; 1e3: string; 08: string; -1: int64; in a file 0.5: float64
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"
)

func main() {
	types := []string{}
	for _, text := range []string{"5", "0.5", "1e3", "08", "-1"} {
		read, err := strvals.Parse("factor=" + text)
		if err != nil {
			panic(err)
		}
		types = append(types, fmt.Sprintf("%s: %T", text, read["factor"]))
	}
	file := map[string]any{}
	if err := yaml.Unmarshal([]byte("factor: 0.5"), &file); err != nil {
		panic(err)
	}
	fmt.Printf("%s; in a file 0.5: %T\n", strings.Join(types, "; "), file["factor"])
}
GO
go mod init finding > /dev/null 2>&1
go get helm.sh/helm/v3@v3.18.6 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='5: int64; 0.5: string; 1e3: string; 08: string; -1: int64; in a file 0.5: float64'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
