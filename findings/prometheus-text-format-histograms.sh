#!/bin/sh
# parse-prometheus-text-format 1.1.1 (JavaScript): a histogram that has a label, as those of Kueue that name a queue.
# Behaviour: without a label its sum and count are there. With one, the label, the sum and the count are left out, and of two
# queues there is one entry with the buckets of the last; a summary loses the same. Gauges and counters keep their labels. No
# error says so. One would have guessed an entry for each queue; a page shows one queue's waits as those of all.
# Output seen: no label: [{"buckets":{"1":"2","+Inf":"3"},"count":"3","sum":"4"}]; a and b: [{"buckets":{"1":"20","+Inf":"30"}}]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit parse-prometheus-text-format@1.1.1 > /dev/null
cat > finding.mjs <<'JS'
import parse from 'parse-prometheus-text-format';

const one = ['# TYPE wait histogram', 'wait_bucket{le="1"} 2', 'wait_bucket{le="+Inf"} 3', 'wait_sum 4', 'wait_count 3'];
const two = ['# TYPE wait histogram'];
for (const [queue, zero] of [['a', ''], ['b', '0']]) {
  two.push(`wait_bucket{queue="${queue}",le="1"} 2${zero}`, `wait_bucket{queue="${queue}",le="+Inf"} 3${zero}`);
  two.push(`wait_sum{queue="${queue}"} 4${zero}`, `wait_count{queue="${queue}"} 3${zero}`);
}
for (const [name, lines] of [['no label', one], ['a and b', two]]) {
  console.log(`${name}: ${JSON.stringify(parse(lines.join('\n') + '\n')[0].metrics)}`);
}
JS
seen=$(node finding.mjs)
wanted='no label: [{"buckets":{"1":"2","+Inf":"3"},"count":"3","sum":"4"}]
a and b: [{"buckets":{"1":"20","+Inf":"30"}}]'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
