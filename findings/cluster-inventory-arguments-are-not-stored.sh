#!/bin/sh
# sigs.k8s.io/cluster-inventory-api v0.1.3 (Go) and its ClusterProfile CRD, checked by k8s.io/apiextensions-apiserver v0.36.3.
# Behaviour: the extension exec/additional-args is read as a list of texts, and nothing else. The CRD of the same module takes
# objects alone for an extension, so an API server refuses each profile that has such a list; additional-envs, an object, is
# stored. One would have guessed that what the library reads can be written; it matters to who writes profiles for MultiKueue.
# Output seen: ["--project=a"]: refused, {"PROJECT": "a"}: stored
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
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	crd, all := apiextensionsv1.CustomResourceDefinition{}, apiextensions.JSONSchemaProps{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		panic(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &all, nil); err != nil {
		panic(err)
	}
	validator, _, err := validation.NewSchemaValidator(&all)
	if err != nil {
		panic(err)
	}
	for _, content := range []string{`["--project=a"]`, `{"PROJECT": "a"}`} {
		object := map[string]any{}
		profile := `{"spec": {"clusterManager": {"name": "a"}}, "status": {"accessProviders": [{"name": "cloud",
			"cluster": {"server": "https://a", "extensions": [{"name": "x", "extension": ` + content + `}]}}]}}`
		if err := json.Unmarshal([]byte(profile), &object); err != nil {
			panic(err)
		}
		said := "stored"
		if len(validation.ValidateCustomResource(nil, object, validator)) > 0 {
			said = "refused"
		}
		fmt.Printf("%s: %s\n", content, said)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get sigs.k8s.io/cluster-inventory-api@v0.1.3 k8s.io/apiextensions-apiserver@v0.36.3 sigs.k8s.io/yaml@v1.6.0 > /dev/null 2>&1
crd=$(go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-inventory-api)/config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml
go mod tidy > /dev/null 2>&1
seen=$(go run . "$crd")
wanted='["--project=a"]: refused
{"PROJECT": "a"}: stored'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
