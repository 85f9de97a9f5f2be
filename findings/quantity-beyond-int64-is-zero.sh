#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), resource.Quantity: quantities of which Value() or MilliValue() is beyond an int64.
# Behaviour: the type's documentation says that larger numbers are capped at 2^63-1. "10E", which is a way to write a quota
# without a limit, keeps its text, its Value() is 0, and Cmp takes it for the larger one. MilliValue() of "10P" is 0 too.
# Output seen: 10E: text 10E, value 0, larger than 1E: true; 10P: value 10000000000000000, milli 0
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	huge, large := resource.MustParse("10E"), resource.MustParse("10P")
	fmt.Printf("10E: text %s, value %d, larger than 1E: %t; 10P: value %d, milli %d\n",
		huge.String(), huge.Value(), huge.Cmp(resource.MustParse("1E")) > 0, large.Value(), large.MilliValue())
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='10E: text 10E, value 0, larger than 1E: true; 10P: value 10000000000000000, milli 0'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
