#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), resource.Quantity: 10^21, as the sum of a hundred quotas of 10E, which stand for no limit.
# Behaviour: it is written as "1": the number is brought down to thousands of E, for which there is no suffix, and none is written.
# So 1000E in an object, which is no error, is 1 once it is written again. 999E keeps its suffix, 1e21 its exponent, and what has a
# binary suffix is the largest int64. One would have guessed the cap that the type's documentation speaks of, or an error; who sums
# quotas over clusters and reads the sum again has a quota of one.
# Output seen: 999E: "999E"; 1000E: "1"; 1e21: "1e21"; 1024Ei: "9223372036854775807"; 100 times 10E: "1"
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	for _, text := range []string{"999E", "1000E", "1e21", "1024Ei"} {
		var read resource.Quantity
		if err := json.Unmarshal([]byte(`"`+text+`"`), &read); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s\n", text, must(json.Marshal(read)))
	}
	sum := resource.MustParse("0")
	for range 100 {
		sum.Add(resource.MustParse("10E"))
	}
	fmt.Printf("100 times 10E: %s\n", must(json.Marshal(sum)))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='999E: "999E"
1000E: "1"
1e21: "1e21"
1024Ei: "9223372036854775807"
100 times 10E: "1"'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
