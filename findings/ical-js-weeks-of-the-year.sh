#!/bin/sh
# ical.js 2.2.1 and rrule 2.8.1 (JavaScript), which read rules of iCalendar, as for a cluster's maintenance: rules that come by
# the year.
# Behaviour: in ical.js a week of the year (BYWEEKNO=23) is every week from the start on, so a maintenance of one Monday a year is
# one each Monday. A day that a month does not have is moved into the next one, 29 February to 1 March and 31 February to 3 March,
# where RFC 5545 wants it left out, as rrule does; by the month ical.js leaves it out, too. One would have guessed one calendar of
# both, as the rules are plain.
# Output seen: week 23: 2026-06-08 2026-06-15 2026-06-22, 2026-06-01 2027-06-07 2028-06-05; 29 February: 2024-02-29 2025-03-01 ...
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --prefix "$folder" ical.js@2.2.1 rrule@2.8.1 > /dev/null
cat > finding.mjs <<'JS'
import ICAL from "ical.js";
import rrule from "rrule";

for (const [start, rule] of [
  ["2026-06-01", "FREQ=YEARLY;BYWEEKNO=23;BYDAY=MO;COUNT=3"],
  ["2024-02-29", "FREQ=YEARLY;COUNT=3"],
  ["2026-08-31", "FREQ=YEARLY;BYMONTH=2,8;COUNT=3"],
  ["2026-01-31", "FREQ=MONTHLY;COUNT=3"],
]) {
  const times = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString(`${start}T22:00:00`));
  const days = Array.from({ length: 3 }, () => times.next().toString().slice(0, 10));
  const text = `DTSTART:${start.replaceAll("-", "")}T220000Z\nRRULE:${rule}`;
  const others = rrule.rrulestr(text).all().map((time) => time.toISOString().slice(0, 10));
  console.log(`${rule}: ical.js ${days.join(" ")}, rrule ${others.join(" ")}`);
}
JS
seen=$(node finding.mjs)
wanted='FREQ=YEARLY;BYWEEKNO=23;BYDAY=MO;COUNT=3: ical.js 2026-06-08 2026-06-15 2026-06-22, rrule 2026-06-01 2027-06-07 2028-06-05
FREQ=YEARLY;COUNT=3: ical.js 2024-02-29 2025-03-01 2026-03-01, rrule 2024-02-29 2028-02-29 2032-02-29
FREQ=YEARLY;BYMONTH=2,8;COUNT=3: ical.js 2026-08-31 2027-03-03 2027-08-31, rrule 2026-08-31 2027-08-31 2028-08-31
FREQ=MONTHLY;COUNT=3: ical.js 2026-01-31 2026-03-31 2026-05-31, rrule 2026-01-31 2026-03-31 2026-05-31'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
