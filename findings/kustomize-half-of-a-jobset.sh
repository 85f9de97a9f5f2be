#!/bin/sh
# sigs.k8s.io/kustomize/api v0.21.2 (Go): a ConfigMap that is generated, and an image with a new tag, for a Job and a JobSet.
# Behaviour: images are changed wherever there are containers, so in both. The name of the ConfigMap, which gets a hash, is
# changed only in the kinds of a list, so the JobSet's pods ask for "settings", which does not exist. One would have guessed both
# or none; it is so of each job kind that is a custom resource.
# Output seen: Job: trainer:2 settings-4h2mbtbbt6; JobSet: trainer:2 settings; ConfigMap: settings-4h2mbtbbt6
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const kustomization = `
images: [{name: trainer, newTag: "2"}]
configMapGenerator: [{name: settings, literals: [a=b]}]
resources: [jobs.yaml]
`

const template = `{spec: {containers: [{name: a, image: trainer, envFrom: [{configMapRef: {name: settings}}]}]}}`

const jobs = `
{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: ` + template + `}}
---
{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: a}, spec: {replicatedJobs: [
  {name: a, template: {spec: {template: ` + template + `}}}]}}
`

func main() {
	disk := filesys.MakeFsInMemory()
	for name, content := range map[string]string{"kustomization.yaml": kustomization, "jobs.yaml": jobs} {
		if err := disk.WriteFile(name, []byte(content)); err != nil {
			panic(err)
		}
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, ".")
	if err != nil {
		panic(err)
	}
	paths := map[string][]string{
		"Job":    {"spec", "template", "spec", "containers", "0"},
		"JobSet": {"spec", "replicatedJobs", "0", "template", "spec", "template", "spec", "containers", "0"},
	}
	for _, object := range made.Resources() {
		path, found := paths[object.GetKind()]
		if !found {
			fmt.Println("ConfigMap:", object.GetName())
			continue
		}
		container, err := object.Pipe(yaml.Lookup(path...))
		if err != nil {
			panic(err)
		}
		name, err := container.Pipe(yaml.Lookup("envFrom", "0", "configMapRef", "name"))
		if err != nil {
			panic(err)
		}
		fmt.Println(object.GetKind()+":", yaml.GetValue(container.Field("image").Value), yaml.GetValue(name))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/kustomize/api@v0.21.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='Job: trainer:2 settings-4h2mbtbbt6
JobSet: trainer:2 settings
ConfigMap: settings-4h2mbtbbt6'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
