#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), dynamic/fake: objects that a test gives it, of the kind Gateway.
# Behaviour: it guesses their resource's name by English rules, "y" to "ies", though the name was given beside it: they are kept
# as "gatewaies", so a list of gateways is empty and no error says why. Of the kind Policy it is right.
# Output seen: gateways: 0 of 1; policies: 1 of 1
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

func listed(kind, plural string) string {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind(kind)
	object.SetNamespace("ns")
	object.SetName("a")
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}
	kinds := map[schema.GroupVersionResource]string{resource: kind + "List"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, object)
	list, err := client.Resource(resource).Namespace("ns").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %d of 1", plural, len(list.Items))
}

func main() {
	fmt.Println(strings.Join([]string{listed("Gateway", "gateways"), listed("Policy", "policies")}, "; "))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='gateways: 0 of 1; policies: 1 of 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
