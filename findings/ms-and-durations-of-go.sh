#!/bin/sh
# ms 2.1.3 (JavaScript), by which servers and their settings read times, and metav1.Duration of k8s.io/apimachinery v0.36.3 (Go),
# which writes them in Kubernetes' objects.
# Behaviour: ms reads one number and one unit. Go writes each duration that is a minute or longer in more than one, 5m as 5m0s, so
# what a person wrote as 5m is undefined once a controller has written the object; what is below a minute is read. One would have
# guessed that a time that was read is still read after a round trip, or an error: undefined, as a timeout, is mostly none.
# Output seen: 30s: 30000, as 30s: 30000; 5m: 300000, as 5m0s: undefined; 90m: 5400000, as 1h30m0s: undefined
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit ms@2.1.3 > /dev/null
cat > finding.mjs <<'JS'
import ms from 'ms';

for (const text of process.argv.slice(2)) console.log(`${text}: ${ms(text)}`);
JS
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, text := range os.Args[1:] {
		var duration metav1.Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &duration); err != nil {
			panic(err)
		}
		os.Stdout.WriteString(duration.Duration.String() + "\n")
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
set -- 30s 5m 90m
node finding.mjs "$@" > before
go run . "$@" > written
node finding.mjs $(cat written) > after
seen=$(paste -d ',' before after | sed 's/,/, as /')
wanted='30s: 30000, as 30s: 30000
5m: 300000, as 5m0s: undefined
90m: 5400000, as 1h30m0s: undefined'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
