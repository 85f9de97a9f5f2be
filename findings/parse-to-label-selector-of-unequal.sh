#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go), labels.Parse, which reads what kubectl -l takes, and metav1.ParseToLabelSelector: one text.
# Behaviour: "b!=c" is read by the one and for the other "!=" is no valid operator, though it makes a NotIn of "b notin (c)",
# which says the same; b>5 is refused as well. What the first has read, it writes as b!=c, so a text that came out of a selector
# may not go in again. One would have guessed that a LabelSelector is made of each text that it can express; it matters to who
# takes a selector from a command line into an object.
# Output seen: b=c: read, read; b in (c): read, read; b notin (c): read, read; b!=c: read, error; !b: read, read; b>5: read, error
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

func said(err error) string {
	if err != nil {
		return "error"
	}
	return "read"
}

func main() {
	for _, text := range []string{"b=c", "b in (c)", "b notin (c)", "b!=c", "!b", "b>5"} {
		_, parsed := labels.Parse(text)
		_, made := metav1.ParseToLabelSelector(text)
		fmt.Printf("%s: labels.Parse %s, ParseToLabelSelector %s\n", text, said(parsed), said(made))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='b=c: labels.Parse read, ParseToLabelSelector read
b in (c): labels.Parse read, ParseToLabelSelector read
b notin (c): labels.Parse read, ParseToLabelSelector read
b!=c: labels.Parse read, ParseToLabelSelector error
!b: labels.Parse read, ParseToLabelSelector read
b>5: labels.Parse read, ParseToLabelSelector error'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
