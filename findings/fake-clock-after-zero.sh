#!/bin/sh
# k8s.io/utils v0.0.0-20260626114624-be93311217bd (Go), clock/testing: waits that are over at once.
# Behaviour: After and NewTimer of a FakeClock with 0 do not fire before the clock is moved (a step of 0 is enough), so code
# that waits for what is left of a time that is over stands still in a test; those of the real clock fire at once.
# Output seen: real: fires; fake: waits; fake after a step of 0: fires
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func fires(fired <-chan time.Time) string {
	select {
	case <-fired:
		return "fires"
	case <-time.After(time.Second):
		return "waits"
	}
}

func main() {
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	waiting := fake.After(0)
	before := fires(waiting)
	fake.Step(0)
	fmt.Printf("real: %s; fake: %s; fake after a step of 0: %s\n", fires(clock.RealClock{}.After(0)), before, fires(waiting))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/utils@v0.0.0-20260626114624-be93311217bd > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='real: fires; fake: waits; fake after a step of 0: fires'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
