#!/bin/sh
# k8s.io/kubectl v0.36.3 (Go), the sorter of kubectl get --sort-by: nodes by a label that has numbers and names, as of racks.
# Behaviour: two texts are compared as quantities where both can be read so, else by their letters. So 9 is before 10, 10 before 10b
# and 10b before 9: there is no first, and the three stay in whatever order they came. All that can be read so is sorted by amount,
# also where it is a name: 1e3 is behind 20, and 3m before 1. One would have guessed an order, be it of letters or of numbers, that
# does not depend on the one before: two calls, or two clusters, list the same nodes differently.
# Output seen: 9 10 10b: 9 10 10b; 10 10b 9: 10 10b 9; 10b 9 10: 10b 9 10; 1e3 20 3m 1: 3m 1 20 1e3
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/cmd/get"
)

func main() {
	for _, racks := range []string{"9 10 10b", "10 10b 9", "10b 9 10", "1e3 20 3m 1"} {
		table := &metav1.Table{}
		for _, rack := range strings.Fields(racks) {
			node := &unstructured.Unstructured{Object: map[string]any{}}
			node.SetLabels(map[string]string{"rack": rack})
			table.Rows = append(table.Rows, metav1.TableRow{Object: runtime.RawExtension{Object: node}})
		}
		sorter, err := get.NewTableSorter(table, "{.metadata.labels.rack}")
		if err != nil {
			panic(err)
		}
		if err := sorter.Sort(); err != nil {
			panic(err)
		}
		sorted := []string{}
		for _, row := range table.Rows {
			sorted = append(sorted, row.Object.Object.(*unstructured.Unstructured).GetLabels()["rack"])
		}
		fmt.Printf("%s: %s\n", racks, strings.Join(sorted, " "))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/kubectl@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='9 10 10b: 9 10 10b
10 10b 9: 10 10b 9
10b 9 10: 10b 9 10
1e3 20 3m 1: 3m 1 20 1e3'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
