#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go), pkg/util/resource: IsZero of a ResourceList.
# Behaviour: only a list without entries counts as zero; one in which each quantity is 0 does not, though the function has a loop
# over the quantities, which nothing ever reaches. (resource.Quantity's IsZero, and quota's IsZero in k8s.io/apiserver, look at
# the quantities.)
# Output seen: empty: true; cpu 0: false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/pkg/util/resource"
)

func main() {
	zero := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}
	fmt.Printf("empty: %t; cpu 0: %t\n", kueue.IsZero(corev1.ResourceList{}), kueue.IsZero(zero))
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='empty: true; cpu 0: false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
