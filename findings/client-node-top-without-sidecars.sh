#!/bin/sh
# @kubernetes/client-node 1.4.0 (JavaScript), topNodes, and k8s.io/component-helpers v0.36.3 (Go), by which the scheduler counts:
# what a pod requests, with an init container of 4 CPUs, a sidecar (an init container that goes on) of 1, a container of 1 and the
# overhead of its runtime.
# Behaviour: topNodes adds up the containers alone, so the pod requests 1 CPU, and a request of the pod as a whole (spec.resources)
# is not seen either. The scheduler takes 4.25, and 3.25 for the pod with 3 as a whole. One would have guessed the request that a
# node is filled by; a page shows room on a node that takes no more pods.
# Output seen: client-node, containers: 1; client-node, whole: 1; scheduler, containers: 4250m; scheduler, whole: 3250m
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 > /dev/null
cat > containers.json <<'JSON'
{"metadata": {"namespace": "ns", "name": "example"}, "status": {"phase": "Running"}, "spec": {
  "nodeName": "node", "overhead": {"cpu": "250m"},
  "initContainers": [
    {"name": "a", "resources": {"requests": {"cpu": "4"}}},
    {"name": "b", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
  ],
  "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
JSON
cat > whole.json <<'JSON'
{"metadata": {"namespace": "ns", "name": "example"}, "status": {"phase": "Running"}, "spec": {
  "nodeName": "node", "overhead": {"cpu": "250m"}, "resources": {"requests": {"cpu": "3"}},
  "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
JSON
cat > finding.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { topNodes } from '@kubernetes/client-node';

for (const name of ['containers', 'whole']) {
  const items = [JSON.parse(readFileSync(`${name}.json`, 'utf8'))];
  const size = { cpu: '8', memory: '1Gi' };
  const node = { metadata: { name: 'node' }, status: { allocatable: size, capacity: size } };
  const [status] = await topNodes({ listNode: async () => ({ items: [node] }), listPodForAllNamespaces: async () => ({ items }) });
  console.log(`client-node, ${name}: ${status.CPU.RequestTotal}`);
}
JS
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	helpers "k8s.io/component-helpers/resource"
)

func main() {
	for _, name := range []string{"containers", "whole"} {
		var pod corev1.Pod
		read, err := os.ReadFile(name + ".json")
		if err == nil {
			err = json.Unmarshal(read, &pod)
		}
		if err != nil {
			panic(err)
		}
		requests := helpers.PodRequests(&pod, helpers.PodResourcesOptions{})
		fmt.Printf("scheduler, %s: %s\n", name, requests.Cpu())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/component-helpers@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(node finding.mjs; go run .)
wanted='client-node, containers: 1
client-node, whole: 1
scheduler, containers: 4250m
scheduler, whole: 3250m'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
