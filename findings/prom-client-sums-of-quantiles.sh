#!/bin/sh
# prom-client 15.1.3 (JavaScript), AggregatorRegistry, which puts the metrics of a server's processes together for one page: three
# processes that measured the same.
# Behaviour: each value is summed unless its metric has another setting, the quantiles of a summary too: where each job of each process
# waited for 10 seconds, the page says that half of them waited for 30, though its sum and count are right. A time, as of the last
# success, becomes three times that, in the year 2131. One would have guessed that what cannot be summed is left out, or an error:
# an alert on waits fires when a process is added.
# Output seen: wait_seconds{quantile="0.5"} 30, _sum 3000, _count 300; last_success_timestamp_seconds 5100000000
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit prom-client@15.1.3 > /dev/null
cat > finding.mjs <<'JS'
import client from 'prom-client';

async function measured() {
  const registry = new client.Registry();
  const settings = { help: 'measured', registers: [registry] };
  const waits = new client.Summary({ name: 'wait_seconds', percentiles: [0.5], ...settings });
  for (let job = 0; job < 100; job++) waits.observe(10);
  new client.Gauge({ name: 'last_success_timestamp_seconds', ...settings }).set(1700000000);
  return registry.getMetricsAsJSON();
}

const processes = [await measured(), await measured(), await measured()];
const page = await client.AggregatorRegistry.aggregate(processes).metrics();
console.log(page.split('\n').filter((line) => line && !line.startsWith('#')).join('\n'));
JS
seen=$(node finding.mjs)
wanted='wait_seconds{quantile="0.5"} 30
wait_seconds_sum 3000
wait_seconds_count 300
last_success_timestamp_seconds 5100000000'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
