#!/bin/sh
# open-cluster-management.io/sdk-go v1.1.0 with open-cluster-management.io/api v1.2.0 (Go), the builder that puts objects into
# ManifestWorks of at most 50 kB.
# Behaviour: a single object of 41 kB, which is beyond the 80 % that it fills, makes two works: the first has no manifest at all,
# and is to be created as well. Of the metadata that the caller gives for each work the labels stay and the annotations are gone
# (they have an option of their own). One would have guessed one work, or an error, and what was given; it matters to who counts
# works, waits until each is applied, or marks them for a dispatcher by an annotation.
# Output seen: 1 kB: [1]; 41 kB: [0 1]; labels: map[a:1], annotations: map[]
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/sdk-go/pkg/apis/work/v1/builder"
)

func named(index int) metav1.ObjectMeta {
	marks := map[string]string{"a": "1"}
	return metav1.ObjectMeta{Name: fmt.Sprint("example-", index), Labels: marks, Annotations: marks}
}

func main() {
	var works []*workv1.ManifestWork
	for _, size := range []int{1, 41} {
		object := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", size*1000)}}
		object.APIVersion, object.Kind, object.Namespace, object.Name = "v1", "ConfigMap", "ns", "example"
		var err error
		if works, _, err = builder.NewWorkBuilder().Build([]runtime.Object{object}, named); err != nil {
			panic(err)
		}
		counts := []int{}
		for _, work := range works {
			counts = append(counts, len(work.Spec.Workload.Manifests))
		}
		fmt.Printf("%d kB: %v\n", size, counts)
	}
	fmt.Printf("labels: %v, annotations: %v\n", works[0].Labels, works[0].Annotations)
}
GO
go mod init finding > /dev/null 2>&1
go get open-cluster-management.io/sdk-go@v1.1.0 open-cluster-management.io/api@v1.2.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='1 kB: [1]
41 kB: [0 1]
labels: map[a:1], annotations: map[]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
