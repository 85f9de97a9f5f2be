#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), util/errors: NewAggregate of what three clusters answered.
# Behaviour: errors of one text are written once, without a count, so three clusters that say "timeout" read like one; errors.Join
# of Go's own library writes three. Errors() has all. One would have guessed three, as for errors that differ; who reads the log
# looks for one broken cluster.
# Output seen: timeout of 3; [timeout, refused] of 3; errors.Join: 3 lines
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"strings"

	many "k8s.io/apimachinery/pkg/util/errors"
)

func main() {
	for _, last := range []string{"timeout", "refused"} {
		clusters := []error{errors.New("timeout"), errors.New("timeout"), errors.New(last)}
		aggregate := many.NewAggregate(clusters)
		lines := strings.Count(errors.Join(clusters...).Error(), "\n") + 1
		fmt.Printf("%v of %d; errors.Join: %d lines\n", aggregate, len(aggregate.Errors()), lines)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='timeout of 3; errors.Join: 3 lines
[timeout, refused] of 3; errors.Join: 3 lines'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
