#!/bin/sh
# kubernetes-resource-parser 0.1.0 (JavaScript), memoryParser and cpuParser: quantities as API servers write them.
# Behaviour: what stands behind the first digits, and is no suffix it knows, is left out, so 1.5Gi is one byte, 129e6 is 129 bytes
# and a usage of 250000n, as the metrics API writes CPUs, is 250000 CPUs; 1181116006400m, which is 1.1Gi, is no number. 1Gi, 1k
# and 100m are right. One would have guessed 1610612736, as its page speaks of Kubernetes' units; the sums of a dashboard are
# wrong without an error.
# Output seen: 1Gi: 1073741824; 1.5Gi: 1; 129e6: 129; 1181116006400m: NaN; cpu 100m: 0.1; cpu 250000n: 250000
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit kubernetes-resource-parser@0.1.0 > /dev/null
cat > finding.mjs <<'JS'
import parser from 'kubernetes-resource-parser';

const memory = ['1Gi', '1.5Gi', '129e6', '1181116006400m'].map((text) => `${text}: ${parser.memoryParser(text)}`);
const cpus = ['100m', '250000n'].map((text) => `cpu ${text}: ${parser.cpuParser(text)}`);
console.log([...memory, ...cpus].join('; '));
JS
seen=$(node finding.mjs)
wanted='1Gi: 1073741824; 1.5Gi: 1; 129e6: 129; 1181116006400m: NaN; cpu 100m: 0.1; cpu 250000n: 250000'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
