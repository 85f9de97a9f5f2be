#!/bin/sh
# sigs.k8s.io/kwok v0.7.0 (Go), pkg/utils/lifecycle, which plays the nodes and pods of clusters for tests of schedulers: a stage
# that comes after five seconds, with a jitter.
# Behaviour: jitterDurationMilliseconds is the end of the range, not its width: 6000 is five to six seconds. One that is shorter
# than the delay takes its place: with 1000 each pod is done after exactly one second, without an error (a comment at the type says
# so). One would have guessed five to six seconds for 1000, as for apimachinery's wait.Jitter; the simulated jobs run a fifth of
# their time, and end all at once.
# Output seen: jitter 1000: after 1s; jitter 6000: after 5s to 6s
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

func main() {
	for _, jitter := range []int64{1000, 6000} {
		delay := int64(5000)
		stage := &internalversion.Stage{}
		stage.Name = "pod-complete"
		stage.Spec.Selector = &internalversion.StageSelector{}
		stage.Spec.Delay = &internalversion.StageDelay{DurationMilliseconds: &delay, JitterDurationMilliseconds: &jitter}
		stages, err := lifecycle.NewLifecycle([]*internalversion.Stage{stage})
		if err != nil {
			panic(err)
		}
		event := &lifecycle.Event{Data: map[string]any{}}
		matched, err := stages.Match(context.Background(), event)
		if err != nil {
			panic(err)
		}
		shortest, longest := time.Hour, time.Duration(0)
		for range 1000 {
			delay, _, err := matched.Delay(context.Background(), event, time.Now())
			if err != nil {
				panic(err)
			}
			shortest, longest = min(shortest, delay), max(longest, delay)
		}
		fmt.Printf("jitter %d: after %v to %v\n", jitter, shortest.Round(100*time.Millisecond), longest.Round(100*time.Millisecond))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kwok@v0.7.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='jitter 1000: after 1s to 1s
jitter 6000: after 5s to 6s'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
