#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), kubernetes/fake, NewClientset: options and metadata that it takes without an error and ignores.
# Behaviour: a dry-run Create stores the object, a field selector selects all, Delete removes an object that has a finalizer,
# and generateName makes an object without a name, so a second Create says AlreadyExists.
# Output seen: dry run: stored; metadata.name=b of a: 1; finalizer: deleted; generateName: "", then already exists
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func main() {
	ctx, maps := context.Background(), fake.NewClientset().CoreV1().ConfigMaps("ns")
	object := func(meta metav1.ObjectMeta) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: meta} }
	dry, is := "not stored", "there"
	held, dryRun := object(metav1.ObjectMeta{Name: "a", Finalizers: []string{"x/y"}}), []string{metav1.DryRunAll}
	_, _ = maps.Create(ctx, held, metav1.CreateOptions{DryRun: dryRun})
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); err == nil {
		dry = "stored"
	}
	selected, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=b"})
	if err != nil {
		panic(err)
	}
	_ = maps.Delete(ctx, "a", metav1.DeleteOptions{})
	if _, err := maps.Get(ctx, "a", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		is = "deleted"
	}
	first, err := maps.Create(ctx, object(metav1.ObjectMeta{GenerateName: "a-"}), metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	then := "made"
	if _, err := maps.Create(ctx, object(metav1.ObjectMeta{GenerateName: "a-"}), metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		then = "already exists"
	}
	fmt.Printf("dry run: %s; metadata.name=b of a: %d; finalizer: %s; generateName: %q, then %s\n",
		dry, len(selected.Items), is, first.Name, then)
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='dry run: stored; metadata.name=b of a: 1; finalizer: deleted; generateName: "", then already exists'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
