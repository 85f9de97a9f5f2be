#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), resource.Quantity: Mul, which "will return false if the result is inexact".
# Behaviour: 1.5Gi times 8 becomes 12Gi, which is exact, and the answer is false; times 4 it is true, and of the same amount as
# 1536Mi it is true for each. What has a binary suffix and a fraction is kept in billionths, whose number passes an int64, and that
# is what is asked. One would have guessed that the amount decides; who takes false for an overflow, as of a job's request by the
# count of its pods, refuses a small job of eight.
# Output seen: 1.5Gi times 4: 6Gi true; times 8: 12Gi false; 1536Mi times 4: 6Gi true; times 8: 12Gi true
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range []string{"1.5Gi", "1536Mi"} {
		for _, count := range []int64{4, 8} {
			product := resource.MustParse(text)
			exact := product.Mul(count)
			fmt.Printf("%s times %d: %s %t\n", text, count, product.String(), exact)
		}
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='1.5Gi times 4: 6Gi true
1.5Gi times 8: 12Gi false
1536Mi times 4: 6Gi true
1536Mi times 8: 12Gi true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
