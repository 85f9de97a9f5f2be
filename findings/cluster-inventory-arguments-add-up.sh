#!/bin/sh
# sigs.k8s.io/cluster-inventory-api v0.1.3 (Go), pkg/access: BuildConfigFromCP, for one ClusterProfile after another.
# Behaviour: the arguments and variables of a profile are written into the provider, which all share: cluster b, which adds none,
# gets those of a, and a has its argument twice when it is built again. One would have guessed that a configuration of one cluster
# says nothing about the next; it matters to who reaches several clusters, as MultiKueue does, in one process.
# Output seen: a [--project=a] [{PROJECT a}]; b [--project=a] [{PROJECT a}]; a [--project=a --project=a] [{PROJECT a}]
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

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

const extensions = "clusterprofiles.multicluster.x-k8s.io/exec/additional-"

func profile(name string, more map[string]any) *v1alpha1.ClusterProfile {
	listed := []any{}
	for kind, content := range more {
		listed = append(listed, map[string]any{"name": extensions + kind, "extension": content})
	}
	cluster := map[string]any{"server": "https://" + name, "extensions": listed}
	status := map[string]any{"accessProviders": []any{map[string]any{"name": "cloud", "cluster": cluster}}}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "status": status})
	if err != nil {
		panic(err)
	}
	read := &v1alpha1.ClusterProfile{}
	if err := json.Unmarshal(text, read); err != nil {
		panic(err)
	}
	return read
}

func main() {
	config := access.New([]access.Provider{{
		Name:                        "cloud",
		ExecConfig:                  &clientcmdapi.ExecConfig{Command: "login"},
		ProfileSourcedCLIArgsPolicy: access.ProfileSourcedCLIArgsPolicyAppend,
		ProfileSourcedEnvVarsPolicy: access.ProfileSourcedEnvVarsPolicyReplace,
	}})
	a := profile("a", map[string]any{"args": []string{"--project=a"}, "envs": map[string]string{"PROJECT": "a"}})
	for _, cluster := range []*v1alpha1.ClusterProfile{a, profile("b", nil), a} {
		built, err := config.BuildConfigFromCP(cluster)
		if err != nil {
			panic(err)
		}
		fmt.Println(cluster.Name, built.ExecProvider.Args, built.ExecProvider.Env)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/cluster-inventory-api@v0.1.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='a [--project=a] [{PROJECT a}]
b [--project=a] [{PROJECT a}]
a [--project=a --project=a] [{PROJECT a}]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
