#!/bin/sh
# open-cluster-management.io/ocm v1.0.0 (Go), its scheduler of placements: two of three clusters by ResourceAllocatableCPU, which is "the
# most allocatable"; the third has not said how many CPUs it has.
# Behaviour: the clusters' CPUs are spread over -100 to 100, from the least to the most of those that are asked about. A cluster
# that says nothing has no score, which counts as 0, the middle: it is taken before the one with 400 CPUs, which is the least here.
# Beside a fourth with fewer it is not. One would have guessed that what is not known comes last.
# Output seen: a 1000, b 400, c unknown: a and c; a 1000, b 900, c unknown, d 100: a and b
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

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	listers "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"open-cluster-management.io/api/cluster/v1beta1"
	"open-cluster-management.io/ocm/pkg/placement/controllers/metrics"
	"open-cluster-management.io/ocm/pkg/placement/controllers/scheduling"
)

func cluster(name, cpus string) *clusterv1.ManagedCluster {
	made := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cpus != "unknown" {
		size := clusterv1.ResourceList{clusterv1.ResourceCPU: resource.MustParse(cpus)}
		made.Status.Allocatable, made.Status.Capacity = size, size
	}
	return made
}

func main() {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	earlier := listers.NewPlacementDecisionLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers))
	measured := metrics.NewScheduleMetrics(clock.RealClock{})
	scheduler := scheduling.NewPluginScheduler(
		scheduling.NewSchedulerHandler(nil, earlier, nil, nil, events.NewFakeRecorder(9), measured))
	two := int32(2)
	by := &v1beta1.ScoreCoordinate{Type: v1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: "ResourceAllocatableCPU"}
	placement := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "example", Name: "example"}}
	placement.Spec.NumberOfClusters = &two
	placement.Spec.PrioritizerPolicy.Mode = v1beta1.PrioritizerPolicyModeExact
	placement.Spec.PrioritizerPolicy.Configurations = []v1beta1.PrioritizerConfig{{ScoreCoordinate: by, Weight: 1}}
	for _, clusters := range [][]*clusterv1.ManagedCluster{
		{cluster("a", "1000"), cluster("b", "400"), cluster("c", "unknown")},
		{cluster("a", "1000"), cluster("b", "900"), cluster("c", "unknown"), cluster("d", "100")},
	} {
		result, _ := scheduler.Schedule(context.Background(), placement, clusters)
		taken := []string{}
		for _, cluster := range result.Decisions() {
			taken = append(taken, cluster.Name)
		}
		fmt.Println(taken, result.PrioritizerScores())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get open-cluster-management.io/ocm@v1.0.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='[a c] map[a:100 b:-100 c:0]
[a b] map[a:100 b:77 c:0 d:-100]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
