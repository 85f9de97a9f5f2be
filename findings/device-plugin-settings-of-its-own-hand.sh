#!/bin/sh
# github.com/NVIDIA/k8s-device-plugin v0.17.4 (Go), api/config/v1: the settings of NVIDIA's device plugin, read, written by the same
# types and read again, as a program does that makes the ConfigMap of a cluster's nodes.
# Behaviour: with time slicing it works. Without it, as with MPS, with MIG alone or by the defaults, what is written has an empty
# timeSlicing, which the same types refuse: "no resources specified". One would have guessed that they read what they write; the
# plugin does not start with it, so the node has no GPUs.
# Output seen: time slicing: read again; MPS: no resources specified; MIG: no resources specified
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

	spec "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	shared := "sharing: {%s: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
	for _, one := range [][2]string{
		{"time slicing", strings.Replace(shared, "%s", "timeSlicing", 1)},
		{"MPS", strings.Replace(shared, "%s", "mps", 1)},
		{"MIG", "flags: {migStrategy: mixed}"},
	} {
		var first, again spec.Config
		if err := yaml.Unmarshal([]byte("version: v1\n"+one[1]), &first); err != nil {
			panic(err)
		}
		written, err := yaml.Marshal(first)
		if err != nil {
			panic(err)
		}
		said := "read again"
		if err := yaml.Unmarshal(written, &again); err != nil {
			parts := strings.Split(err.Error(), ": ")
			said = parts[len(parts)-1]
		}
		fmt.Printf("%s: %s\n", one[0], said)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/NVIDIA/k8s-device-plugin@v0.17.4 sigs.k8s.io/yaml@v1.4.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='time slicing: read again
MPS: no resources specified
MIG: no resources specified'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
