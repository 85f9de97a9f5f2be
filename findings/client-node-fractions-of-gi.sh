#!/bin/sh
# @kubernetes/client-node 1.4.0 (JavaScript), util: quantities with a fraction, by which topPods and topNodes add up requests.
# Behaviour: 0.5 and 500m are numbers, 1Gi is a BigInt, and 1.5Gi is a SyntaxError, as no BigInt has a fraction, so the sums of a
# whole node fail for one pod that requests 1.5Gi. One would have guessed 1610612736.
# Output seen: 500m: 0.5; 1Gi: 1073741824; 1.5Gi: SyntaxError; 0.1G: SyntaxError; a pod: SyntaxError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @kubernetes/client-node@1.4.0 > /dev/null
cat > finding.mjs <<'JS'
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const { quantityToScalar, totalMemory } = await import(
  pathToFileURL(resolve('node_modules/@kubernetes/client-node/dist/util.js'))
);
function said(what) {
  try {
    return String(what());
  } catch (error) {
    return error.name;
  }
}
const pod = { spec: { containers: [{ resources: { requests: { memory: '1.5Gi' } } }] } };
const seen = ['500m', '1Gi', '1.5Gi', '0.1G'].map((text) => `${text}: ${said(() => quantityToScalar(text))}`);
console.log([...seen, `a pod: ${said(() => totalMemory(pod).request)}`].join('; '));
JS
seen=$(node finding.mjs)
wanted='500m: 0.5; 1Gi: 1073741824; 1.5Gi: SyntaxError; 0.1G: SyntaxError; a pod: SyntaxError'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
