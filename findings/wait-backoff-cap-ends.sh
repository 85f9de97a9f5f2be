#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), wait.ExponentialBackoff: ten steps and a longest wait (Cap) that the third would pass.
# Behaviour: Cap does not only bound the wait: it ends the tries. With Steps 10 there are 3; without a Cap, 10.
# Output seen: cap 4ms: 3 tries; no cap: 10 tries
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func tries(limit time.Duration) int {
	count := 0
	backoff := wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 10, Cap: limit}
	_ = wait.ExponentialBackoff(backoff, func() (bool, error) {
		count++
		return false, nil
	})
	return count
}

func main() {
	fmt.Printf("cap 4ms: %d tries; no cap: %d tries\n", tries(4*time.Millisecond), tries(0))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='cap 4ms: 3 tries; no cap: 10 tries'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
