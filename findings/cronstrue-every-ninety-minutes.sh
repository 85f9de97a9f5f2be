#!/bin/sh
# cronstrue 3.39.0 (JavaScript), by which pages say a schedule in words, and github.com/robfig/cron/v3 v3.0.1 (Go), by which
# CronJobs and Argo's CronWorkflows run: steps that are longer than the field.
# Behaviour: "*/90 * * * *" is said to be every 90 minutes and "0 */36 * * *" every 36 hours; a step begins anew with each hour or
# day, so they fire each hour and each midnight. Both take the line without an error. One would have guessed an error in one of
# them, or words that are true; a job that seems to run 16 times a day runs 24 times.
# Output seen: */90 * * * *: Every 90 minutes, 24 in a day; 0 */36 * * *: On the hour, every 36 hours, 1 in a day
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
npm install --silent --no-fund --no-audit cronstrue@3.39.0 > /dev/null
cat > finding.mjs <<'JS'
import cronstrue from 'cronstrue';

console.log(cronstrue.toString(process.argv[2]));
JS
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard(os.Args[1])
	if err != nil {
		panic(err)
	}
	count, start := 0, time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	for at := schedule.Next(start); at.Before(start.AddDate(0, 0, 1)); at = schedule.Next(at) {
		count++
	}
	fmt.Println(count, "in a day")
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
go build -o fires .
seen=$(for line in '*/90 * * * *' '0 */36 * * *'; do echo "$line: $(node finding.mjs "$line"), $(./fires "$line")"; done)
wanted='*/90 * * * *: Every 90 minutes, 24 in a day
0 */36 * * *: On the hour, every 36 hours, 1 in a day'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
