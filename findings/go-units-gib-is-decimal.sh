#!/bin/sh
# github.com/docker/go-units v0.5.0 (Go), by which container tools read sizes: units with and without an i.
# Behaviour: the function decides, the text does not: FromHumanSize takes GiB for 10^9, RAMInBytes takes GB for 2^30, and both
# take m for millions, where Kubernetes has thousandths. Gi, as a manifest has it, is an error in both. One would have guessed
# that an explicit GiB is 2^30 in either; a disk of 100GiB is 7 % too small.
# Output seen: 1GiB: 1000000000 or 1073741824; 1GB: 1000000000 or 1073741824; 500m: 500000000 or 524288000; 1Gi: error or error
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/docker/go-units"
)

func said(size int64, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(size)
}

func main() {
	for _, text := range []string{"1GiB", "1GB", "500m", "1Gi"} {
		fmt.Printf("%s: %s or %s\n", text, said(units.FromHumanSize(text)), said(units.RAMInBytes(text)))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/docker/go-units@v0.5.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='1GiB: 1000000000 or 1073741824
1GB: 1000000000 or 1073741824
500m: 500000000 or 524288000
1Gi: error or error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
