#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), equality.Semantic.DeepDerivative, by which controllers see whether an object has what they want:
# "unset fields in a1 are ignored".
# Behaviour: a list fits each longer one that begins with it, and a text that is set to be empty fits each text, also in a map and
# behind a pointer; a false or a 0 behind a pointer fits only itself. One would have guessed that a list which is set is compared, as
# numbers are: a controller that takes an argument, a toleration or a label's value away sees nothing to write.
# Output seen: args [a] of [a b]: true; args [b] of [a b]: false; label "" of "x": true; managedBy "" of "x": true; suspend false of
# true: false; parallelism 0 of 3: false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func pointer[T any](value T) *T {
	return &value
}

func main() {
	for _, one := range []struct {
		name      string
		want, has any
	}{
		{"args [a] of [a b]", corev1.Container{Args: []string{"a"}}, corev1.Container{Args: []string{"a", "b"}}},
		{"args [b] of [a b]", corev1.Container{Args: []string{"b"}}, corev1.Container{Args: []string{"a", "b"}}},
		{`label "" of "x"`, map[string]string{"label": ""}, map[string]string{"label": "x"}},
		{`managedBy "" of "x"`, batchv1.JobSpec{ManagedBy: pointer("")}, batchv1.JobSpec{ManagedBy: pointer("x")}},
		{"suspend false of true", batchv1.JobSpec{Suspend: pointer(false)}, batchv1.JobSpec{Suspend: pointer(true)}},
		{"parallelism 0 of 3", batchv1.JobSpec{Parallelism: pointer(int32(0))}, batchv1.JobSpec{Parallelism: pointer(int32(3))}},
	} {
		fmt.Printf("%s: %t\n", one.name, equality.Semantic.DeepDerivative(one.want, one.has))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 k8s.io/api@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='args [a] of [a b]: true
args [b] of [a b]: false
label "" of "x": true
managedBy "" of "x": true
suspend false of true: false
parallelism 0 of 3: false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
