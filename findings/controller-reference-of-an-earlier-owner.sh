#!/bin/sh
# sigs.k8s.io/controller-runtime v0.24.1 (Go), controllerutil: an owner that was deleted and made again under its name.
# Behaviour: group, kind and name decide, not the UID. SetControllerReference takes over what the earlier owner controls, as if
# it were its own (of another name it is an error), and HasOwnerReference says that it has it; metav1.IsControlledBy does not.
# Output seen: has it: true; IsControlledBy: false; set: <nil>, uid 1 then 2; of another name: refused
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func job(name string, uid types.UID) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

func main() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-1"}}
	set := func(owner *batchv1.Job) error { return controllerutil.SetControllerReference(owner, pod, scheme.Scheme) }
	if err := set(job("a", "1")); err != nil {
		panic(err)
	}
	again, other, before := job("a", "2"), "taken", pod.OwnerReferences[0].UID
	has, err := controllerutil.HasOwnerReference(pod.OwnerReferences, again, scheme.Scheme)
	if err != nil {
		panic(err)
	}
	controlled := metav1.IsControlledBy(pod, again)
	if set(job("b", "3")) != nil {
		other = "refused"
	}
	err = set(again)
	fmt.Printf("has it: %t; IsControlledBy: %t; set: %v, uid %s then %s; of another name: %s\n",
		has, controlled, err, before, pod.OwnerReferences[0].UID, other)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/controller-runtime@v0.24.1 k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 k8s.io/client-go@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='has it: true; IsControlledBy: false; set: <nil>, uid 1 then 2; of another name: refused'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
