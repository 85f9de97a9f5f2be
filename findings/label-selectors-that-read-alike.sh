#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), metav1.FormatLabelSelector, by which kubectl writes selectors: an empty selector and none at
# all.
# Behaviour: both are written as "<none>", though the empty one selects each object and the absent one none. One would have
# guessed two texts for two opposites; who reads which namespaces a queue or a policy takes cannot tell all from none.
# Output seen: empty: <none>, selects true; absent: <none>, selects false; a=b: a=b, selects true
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
)

func show(name string, selector *metav1.LabelSelector) {
	matching, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s, selects %t\n", name, metav1.FormatLabelSelector(selector), matching.Matches(labels.Set{"a": "b"}))
}

func main() {
	show("empty", &metav1.LabelSelector{})
	show("absent", nil)
	show("a=b", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='empty: <none>, selects true
absent: <none>, selects false
a=b: a=b, selects true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
