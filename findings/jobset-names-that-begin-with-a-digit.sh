#!/bin/sh
# sigs.k8s.io/jobset v0.11.0 (Go), pkg/webhooks: which names a JobSet may have.
# Behaviour: the names of its Jobs are checked by the older rule for labels of DNS, by which a name begins with a letter, as Services'
# do. So a JobSet that is named by its date or by a hash is refused, though each API server takes that name for a Job and for most
# other kinds; of hashes in hexadecimal it is ten in sixteen. The error names the replicated Job as what is wrong. The
# longest name that is taken hangs on the replicas, as their number is in the Jobs' names: it is one letter less from 11 on, and
# for 0, where it counts "-1". One would have guessed the rule for Jobs' names.
# Output seen: train-2026 and 2 replicas: taken; 2026-train and 2: replicatedJobs[0].name is invalid; 59 letters and 1 or 10: taken;
# 59 letters and 0 or 11: too long
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
	"strings"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(name string, replicas int32) {
	made := &jobset.JobSet{}
	made.Name = name
	made.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "w", GroupName: "default", Replicas: replicas}}
	hook := must(webhooks.NewJobSetWebhook(nil))
	must(0, hook.Default(context.Background(), made))
	said := "taken"
	if _, err := hook.ValidateCreate(context.Background(), made); err != nil {
		said, _, _ = strings.Cut(err.Error(), ": a DNS-1035") // what follows is the rule
		if strings.Contains(err.Error(), "JobSet name is too long") {
			said = "JobSet name is too long"
		}
	}
	if len(name) == 59 {
		name = "59 letters"
	}
	fmt.Printf("%s and %d: %s\n", name, replicas, said)
}

func main() {
	check("train-2026", 2)
	check("2026-train", 2)
	for _, replicas := range []int32{0, 1, 10, 11} {
		check(strings.Repeat("a", 59), replicas)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/jobset@v0.11.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='train-2026 and 2: taken
2026-train and 2: spec.replicatedJobs[0].name: Invalid value: "2026-train-w-1"
59 letters and 0: JobSet name is too long
59 letters and 1: taken
59 letters and 10: taken
59 letters and 11: JobSet name is too long'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
