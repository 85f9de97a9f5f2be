#!/bin/sh
# helm.sh/helm/v3 v3.18.6 (Go): numbers of a values file in a template, as the seconds of a Job's deadline and time to live.
# Behaviour: each number is a float. Below a million it is written as it stands in the file, from there on with an exponent: a Job that
# may last for a month, 2592000 seconds, gets 2.592e+06, which no API server takes for a whole number, and with quote it is the text
# "2.592e+06". int64 and toYaml write it as it was. One would have guessed
# one form for all; a chart that was tried with an hour and a day fails with two weeks.
# Output seen: 999999: 999999 "999999" 999999; 1000000: 1e+06 "1e+06" 1000000; 2592000: 2.592e+06 "2.592e+06" 2592000
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

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	made := &chart.Chart{Metadata: &chart.Metadata{Name: "jobs", Version: "1.0.0", APIVersion: "v2"}}
	template := "{{ range .Values.seconds }}{{ . }} {{ quote . }} {{ int64 . }}\n{{ end }}"
	made.Templates = []*chart.File{{Name: "templates/jobs.yaml", Data: []byte(template)}}
	values := must(chartutil.ReadValues([]byte("seconds: [3600, 86400, 999999, 1000000, 2592000]\n")))
	rendered := must(engine.Render(made, must(chartutil.ToRenderValues(made, values, chartutil.ReleaseOptions{}, nil))))
	fmt.Println(strings.TrimSpace(rendered["jobs/templates/jobs.yaml"]))
}
GO
go mod init finding > /dev/null 2>&1
go get helm.sh/helm/v3@v3.18.6 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='3600 "3600" 3600
86400 "86400" 86400
999999 "999999" 999999
1e+06 "1e+06" 1000000
2.592e+06 "2.592e+06" 2592000'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
