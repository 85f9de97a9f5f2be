#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), strategicpatch, with the types of k8s.io/api v0.36.3: the patch by which kubectl edit changes
# the second of two topologySpreadConstraints, one that must hold and one that should, both over zones.
# Behaviour: API servers take two such constraints, as topologyKey and whenUnsatisfiable together make one ("listMapKeys"), but the
# patch names topologyKey alone. So maxSkew 2 for the one that should hold is written into the one that must, and the other stays as
# it was, without an error. One would have guessed that the patch of two objects gives the second: pods that fitted are now pending.
# Output seen: before: DoNotSchedule 5, ScheduleAnyway 1; wanted: DoNotSchedule 5, ScheduleAnyway 2; patched: DoNotSchedule 2,
# ScheduleAnyway 1
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func pod(hard, soft int32) []byte {
	spreads := []corev1.TopologySpreadConstraint{
		{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MaxSkew: hard},
		{TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, MaxSkew: soft},
	}
	return must(json.Marshal(corev1.Pod{Spec: corev1.PodSpec{TopologySpreadConstraints: spreads}}))
}

func say(name string, text []byte) {
	var pod corev1.Pod
	must(0, json.Unmarshal(text, &pod))
	fmt.Printf("%s:", name)
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		fmt.Printf(" %s %d", spread.WhenUnsatisfiable, spread.MaxSkew)
	}
	fmt.Println()
}

func main() {
	before, wanted := pod(5, 1), pod(5, 2)
	patch := must(strategicpatch.CreateTwoWayMergePatch(before, wanted, corev1.Pod{}))
	say("before", before)
	say("wanted", wanted)
	say("patched", must(strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 k8s.io/api@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='before: DoNotSchedule 5 ScheduleAnyway 1
wanted: DoNotSchedule 5 ScheduleAnyway 2
patched: DoNotSchedule 2 ScheduleAnyway 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
