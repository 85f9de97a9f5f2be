#!/bin/sh
# k8s.io/apimachinery v0.36.3 (Go): label selectors with nothing in the brackets.
# Behaviour: "a in ()" is no error and does not select nothing: it selects objects whose label a is empty, and "a in (b,)"
# those and a=b.
# Output seen: in()=true,false,false in(b,)=true,true,false   (for labels a="", a="b", none)
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

func matches(text string) string {
	selector, err := labels.Parse(text)
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("%t,%t,%t", selector.Matches(labels.Set{"a": ""}), selector.Matches(labels.Set{"a": "b"}),
		selector.Matches(labels.Set{}))
}

func main() {
	fmt.Printf("in()=%s in(b,)=%s\n", matches("a in ()"), matches("a in (b,)"))
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='in()=true,false,false in(b,)=true,true,false'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
