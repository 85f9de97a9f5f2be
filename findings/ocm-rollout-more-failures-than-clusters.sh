#!/bin/sh
# open-cluster-management.io/sdk-go v1.1.0 with open-cluster-management.io/api v1.2.0 (Go), the rollout over the clusters of a
# placement, in steps of two: one of four clusters has failed, and maxFailures says how many may.
# Behaviour: with 1 to 4 it goes on with b and c. With 5, which is more than there are clusters, it stops as with 0: a number
# beyond the clusters is put back to none. One would have guessed that a larger number lets more fail; a strategy that was written
# for ten clusters stops at the first failure once six of them are taken out, and says no more than that the limit was passed.
# Output seen: 0: [] true; 1: [b c] false; 4: [b c] false; 5: [] true; 100%: [b c] false
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"open-cluster-management.io/api/cluster/v1alpha1"
	"open-cluster-management.io/api/cluster/v1beta1"
	rollout "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	placement "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
)

type decisions []*v1beta1.PlacementDecision

func (all decisions) List(labels.Selector, string) ([]*v1beta1.PlacementDecision, error) {
	return all, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	decision := &v1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "example"}}
	decision.Labels = map[string]string{v1beta1.PlacementLabel: "example", v1beta1.DecisionGroupIndexLabel: "0"}
	long := metav1.Unix(0, 0)
	clusters := []rollout.ClusterRolloutStatus{{ClusterName: "a", Status: rollout.Failed, LastTransitionTime: &long}}
	for _, name := range []string{"a", "b", "c", "d"} {
		decision.Status.Decisions = append(decision.Status.Decisions, v1beta1.ClusterDecision{ClusterName: name})
		if name != "a" {
			clusters = append(clusters, rollout.ClusterRolloutStatus{ClusterName: name, Status: rollout.ToApply})
		}
	}
	wanted := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "example"}}
	status := func(string, any) (rollout.ClusterRolloutStatus, error) { return rollout.ClusterRolloutStatus{}, nil }
	for _, failures := range []string{"0", "1", "4", "5", "100%"} {
		tracker := placement.NewPlacementDecisionClustersTracker(wanted, decisions{decision}, nil)
		must(0, tracker.Refresh())
		handler := must(rollout.NewRolloutHandler[any](tracker, status))
		strategy := v1alpha1.RolloutStrategy{Type: v1alpha1.Progressive, Progressive: &v1alpha1.RolloutProgressive{
			RolloutConfig:  v1alpha1.RolloutConfig{MaxFailures: intstr.Parse(failures), ProgressDeadline: "0s"},
			MaxConcurrency: intstr.FromInt32(2),
		}}
		_, result, err := handler.GetRolloutCluster(strategy, clusters)
		must(0, err)
		next := []string{}
		for _, cluster := range result.ClustersToRollout {
			next = append(next, cluster.ClusterName)
		}
		fmt.Printf("%s: %v %t\n", failures, next, result.MaxFailureBreach)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get open-cluster-management.io/sdk-go@v1.1.0 open-cluster-management.io/api@v1.2.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='0: [] true
1: [b c] false
4: [b c] false
5: [] true
100%: [b c] false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
