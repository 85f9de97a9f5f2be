#!/bin/sh
# sigs.k8s.io/controller-runtime v0.24.1 (Go), client/fake: calls that an API server would refuse.
# Behaviour: Delete with the UID of another object as its precondition deletes (only the resourceVersion is compared; objects
# get no UID), and a dry-run Create of an object that exists succeeds. A server answers both with Conflict or AlreadyExists.
# Output seen: uid: "", delete with another uid: <nil>, then: not found; dry-run create of what exists: <nil>
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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
}

func main() {
	ctx, cl, stored := context.Background(), fake.NewClientBuilder().Build(), configMap()
	if err := cl.Create(ctx, stored); err != nil {
		panic(err)
	}
	dry := cl.Create(ctx, configMap(), client.DryRunAll)
	another := types.UID("another")
	deleted := cl.Delete(ctx, stored, client.Preconditions{UID: &another})
	then := "there"
	if apierrors.IsNotFound(cl.Get(ctx, client.ObjectKeyFromObject(stored), configMap())) {
		then = "not found"
	}
	fmt.Printf("uid: %q, delete with another uid: %v, then: %s; dry-run create of what exists: %v\n", stored.UID, deleted, then, dry)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/controller-runtime@v0.24.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='uid: "", delete with another uid: <nil>, then: not found; dry-run create of what exists: <nil>'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
