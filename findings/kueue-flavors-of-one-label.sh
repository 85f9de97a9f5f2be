#!/bin/sh
# sigs.k8s.io/kueue v0.19.2 (Go), pkg/podset: FromAssignment, the node selector of a PodSet whose resources have two flavors.
# Behaviour: where the flavors have one node label with two values, either of them is taken, by the order of a Go map, so the same
# job starts now in zone a and now in zone b. One would have guessed an error, as for labels that clash with the job's own; it
# matters to who has flavors for CPUs and for GPUs in one ClusterQueue.
# Output seen: zones of 200 starts: map[a:true b:true], errors: 0
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/podset"
)

func flavor(name, zone string) *kueue.ResourceFlavor {
	labels := map[string]string{"topology.kubernetes.io/zone": zone}
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: labels}}
}

func main() {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		panic(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(flavor("cpus", "a"), flavor("gpus", "b")).Build()
	flavors := map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "cpus", "nvidia.com/gpu": "gpus"}
	zones, errors := map[string]bool{}, 0
	for range 200 {
		assignment := &kueue.PodSetAssignment{Flavors: flavors}
		info, err := podset.FromAssignment(context.Background(), api, assignment, &kueue.PodSet{Count: 1})
		if err != nil {
			errors++
			continue
		}
		zones[info.NodeSelector["topology.kubernetes.io/zone"]] = true
	}
	fmt.Printf("zones of 200 starts: %v, errors: %d\n", zones, errors)
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kueue@v0.19.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='zones of 200 starts: map[a:true b:true], errors: 0'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
