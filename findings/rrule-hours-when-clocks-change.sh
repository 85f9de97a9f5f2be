#!/bin/sh
# python-dateutil 2.9.0.post0 (Python), rrule 2.8.1 and rrule-temporal 2.2.8 (JavaScript) and github.com/teambition/rrule-go v1.8.2
# (Go): a rule of iCalendar, as for maintenance windows, that is FREQ=HOURLY from midnight in Berlin, when clocks change.
# Behaviour: they count hours on the wall. In March three of the four give one instant twice, each another pair, as 02:00 is not
# there; RFC 5545 leaves such a time out, as rrule-temporal does. In October each leaves an hour out, not all the same one. With
# COUNT=5 the rule so ends an hour early or late. One would have guessed one instant each hour, and that four agree.
# Output seen (UTC): dateutil: 23 00 01 01 02, 22 23 00 02 03; rrule-go: 23 00 01 01 02, 22 23 01 02 03; rrule: 23 23 00 01 02,
# 22 00 01 02 03; rrule-temporal: 23 00 01 02 03, 22 23 00 02 03
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check python-dateutil==2.9.0.post0 tzdata==2025.2
npm install --silent --no-fund --no-audit --prefix "$folder" rrule@2.8.1 rrule-temporal@2.2.8 > /dev/null
cat > finding.py <<'PY'
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr


def hours(month, day):
    start = datetime(2026, month, day, tzinfo=ZoneInfo("Europe/Berlin"))
    times = rrulestr("FREQ=HOURLY;COUNT=5", dtstart=start)
    return " ".join(time.astimezone(timezone.utc).strftime("%H") for time in times)


print(f"dateutil: {hours(3, 29)}, {hours(10, 25)}")
PY
cat > main.go <<'GO'
package main

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/teambition/rrule-go"
)

func main() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	hours := func(month time.Month, day int) string {
		start := time.Date(2026, month, day, 0, 0, 0, 0, berlin)
		rule, err := rrule.NewRRule(rrule.ROption{Freq: rrule.HOURLY, Count: 5, Dtstart: start})
		if err != nil {
			panic(err)
		}
		seen := []string{}
		for _, at := range rule.All() {
			seen = append(seen, at.UTC().Format("15"))
		}
		return strings.Join(seen, " ")
	}
	fmt.Printf("rrule-go: %s, %s\n", hours(3, 29), hours(10, 25))
}
GO
cat > finding.mjs <<'JS'
import rrule from "rrule";
import { RRuleTemporal } from "rrule-temporal";

const rules = ["20260329", "20261025"].map((day) => `DTSTART;TZID=Europe/Berlin:${day}T000000\nRRULE:FREQ=HOURLY;COUNT=5`);
const hours = (dates) => dates.map((date) => date.toISOString().slice(11, 13)).join(" ");
const temporal = (rule) => new RRuleTemporal({ rruleString: rule }).all().map((time) => new Date(time.epochMilliseconds));
console.log(`rrule: ${rules.map((rule) => hours(rrule.rrulestr(rule).all())).join(", ")}`);
console.log(`rrule-temporal: ${rules.map((rule) => hours(temporal(rule))).join(", ")}`);
JS
go mod init finding > /dev/null 2>&1
go get github.com/teambition/rrule-go@v1.8.2 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(own/bin/python finding.py; go run .; TZ=UTC node finding.mjs)
wanted='dateutil: 23 00 01 01 02, 22 23 00 02 03
rrule-go: 23 00 01 01 02, 22 23 01 02 03
rrule: 23 23 00 01 02, 22 00 01 02 03
rrule-temporal: 23 00 01 02 03, 22 23 00 02 03'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
