#!/bin/sh
# k8s.io/dynamic-resource-allocation v0.36.3 (Go), cel: a selector of devices that adds to a device's capacity, asked twice.
# Behaviour: add() of a quantity with a binary suffix and a fraction, here 39.5Gi, writes the sum into the quantity that it is
# called on, so the device has 1Gi more after each question and the second answer is another one; 39Gi stays. One would have
# guessed that an expression changes nothing; the schedulers ask it of each ResourceSlice in their cache.
# Output seen: 39Gi: false, then false, capacity 39Gi; 39.5Gi: false, then true, capacity 42496Mi
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

const sum = `device.capacity["gpu.example.com"].memory.add(quantity("1Gi")).compareTo(quantity("41Gi")) >= 0`

func matches(device resourcev1.Device) bool {
	matched, _, err := cel.GetCompiler(cel.Features{}).CompileCELExpression(sum, cel.Options{}).DeviceMatches(
		context.Background(), cel.Device{Driver: "gpu.example.com", Capacity: device.Capacity})
	if err != nil {
		panic(err)
	}
	return matched
}

func main() {
	for _, capacity := range []string{"39Gi", "39.5Gi"} {
		device := resourcev1.Device{}
		text := fmt.Sprintf(`{"name": "a", "capacity": {"memory": {"value": %q}}}`, capacity)
		if err := json.Unmarshal([]byte(text), &device); err != nil {
			panic(err)
		}
		first, second := matches(device), matches(device)
		after := device.Capacity["memory"].Value
		fmt.Printf("%s: %t, then %t, capacity %s\n", capacity, first, second, after.String())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/dynamic-resource-allocation@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='39Gi: false, then false, capacity 39Gi
39.5Gi: false, then true, capacity 42496Mi'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
