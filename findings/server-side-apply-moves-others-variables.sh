#!/bin/sh
# k8s.io/client-go v0.36.3 (Go), whose schemas go with k8s.io/api, and sigs.k8s.io/structured-merge-diff v6.3.3, by which API servers
# carry out server-side apply: a container's variables, when who applies some of them applies them again.
# Behaviour: a list whose elements have keys keeps others' elements, but not their places. When who applies A and B turns them
# around, another's variable between them goes in front of both, and one behind them goes between them. One would have guessed
# that it stays behind what it stood behind. A variable may name only those before it, so another's $(A)/out is handed over as
# these letters from then on. Init containers, which run in their order, are such a list, too.
# Output seen: A OTHER B, applied A B: A OTHER B; applied B A: OTHER B A; A B OTHER, applied B A: B OTHER A
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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

func pod(names string) *corev1.Pod {
	main := corev1.Container{Name: "main"}
	for _, name := range strings.Fields(names) {
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: "x"})
	}
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return &corev1.Pod{TypeMeta: kind, Spec: corev1.PodSpec{Containers: []corev1.Container{main}}}
}

func read(converter managedfields.TypeConverter, names string) *typed.TypedValue {
	value, err := converter.ObjectToTyped(pod(names))
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, one := range [][2]string{{"A OTHER B", "A B"}, {"A OTHER B", "B A"}, {"A B OTHER", "B A"}} {
		merged, err := read(converter, one[0]).Merge(read(converter, one[1]))
		if err != nil {
			panic(err)
		}
		object, err := converter.TypedToObject(merged)
		if err != nil {
			panic(err)
		}
		var seen corev1.Pod
		content := object.(*unstructured.Unstructured).Object
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &seen); err != nil {
			panic(err)
		}
		names := []string{}
		for _, variable := range seen.Spec.Containers[0].Env {
			names = append(names, variable.Name)
		}
		fmt.Printf("%s, applied %s: %s\n", one[0], one[1], strings.Join(names, " "))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/client-go@v0.36.3 k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='A OTHER B, applied A B: A OTHER B
A OTHER B, applied B A: OTHER B A
A B OTHER, applied B A: B OTHER A'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
