#!/bin/sh
# croniter 7.0.0 and cronsim 2.8 (Python), cron-parser 5.10.6 (JavaScript), github.com/robfig/cron/v3 v3.0.1 with seconds and
# github.com/hashicorp/cronexpr v1.1.3 (Go), by which Nomad's periodic jobs run: a line of six fields, "0 0 12 * * *".
# Behaviour: for three the first field is the second, so it is noon each day. For croniter the last one is: it fires each second
# of one minute on the 12th of a month. For cronexpr the last one is a year, so it is midnight on the 12th. No one says an error.
# One would have guessed noon each day, as by Quartz and Spring; a schedule that moves from one scheduler to the other starts a
# job sixty times, or twelve times a year.
# Output seen: croniter: 12T00:00:00 12T00:00:01; cronsim: 02T12:00:00 03T12:00:00; cron-parser, robfig: the same; cronexpr:
# 12T00:00 ...
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0 TZ=UTC
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check croniter==7.0.0 cronsim==2.8
npm install --silent --no-fund --no-audit cron-parser@5.10.6 > /dev/null
cat > finding.py <<'PY'
from datetime import datetime

from croniter import croniter
from cronsim import CronSim

line, start = "0 0 12 * * *", datetime(2026, 3, 1, 13)
by_croniter, by_cronsim = croniter(line, start), CronSim(line, start)
for name, fire in ("croniter", lambda: by_croniter.get_next(datetime)), ("cronsim", lambda: next(by_cronsim)):
    print(f"{name}:", *(fire().strftime("%m-%dT%H:%M:%S") for _ in range(2)))
PY
cat > finding.mjs <<'JS'
import { CronExpressionParser } from 'cron-parser';

const times = CronExpressionParser.parse('0 0 12 * * *', { currentDate: new Date('2026-03-01T13:00:00Z'), tz: 'UTC' });
console.log('cron-parser: ' + [1, 2].map(() => times.next().toDate().toISOString().slice(5, 19)).join(' '));
JS
cat > main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/hashicorp/cronexpr"
	"github.com/robfig/cron/v3"
)

func main() {
	line, start := "0 0 12 * * *", time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	fields := cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow
	schedule, err := cron.NewParser(fields).Parse(line)
	if err != nil {
		panic(err)
	}
	for _, by := range []struct {
		name string
		next func(time.Time) time.Time
	}{{"robfig", schedule.Next}, {"cronexpr", cronexpr.MustParse(line).Next}} {
		first := by.next(start)
		fmt.Printf("%s: %s %s\n", by.name, first.Format("01-02T15:04:05"), by.next(first).Format("01-02T15:04:05"))
	}
}
GO
go mod init finding > /dev/null 2>&1
go get github.com/robfig/cron/v3@v3.0.1 github.com/hashicorp/cronexpr@v1.1.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; node finding.mjs; go run .)
wanted='croniter: 03-12T00:00:00 03-12T00:00:01
cronsim: 03-02T12:00:00 03-03T12:00:00
cron-parser: 03-02T12:00:00 03-03T12:00:00
robfig: 03-02T12:00:00 03-03T12:00:00
cronexpr: 03-12T00:00:00 04-12T00:00:00'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
