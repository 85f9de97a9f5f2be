#!/bin/sh
# cel-js 0.8.2 (JavaScript), "CEL evaluator": whole numbers, and an error on one side of ||.
# Behaviour: 7/2 is 3.5, 2^53 + 1 loses its last bit, and an absent field makes "... || true" an error. By the CEL
# specification, and in API servers, these are 3, 9007199254740993 and true; @marcbachmann/cel-js 8.0.0 answers so.
# Output seen: cel-js: 3.5 9007199254740992 error; @marcbachmann/cel-js: 3 9007199254740993 true
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit cel-js@0.8.2 @marcbachmann/cel-js@8.0.0 > /dev/null
cat > finding.mjs <<'JS'
import * as other from '@marcbachmann/cel-js';
import * as cel from 'cel-js';

const texts = ['7/2', '9007199254740993', 'o.absent == 1 || true'];
function values({ evaluate }) {
  return texts.map((text) => {
    try {
      return String(evaluate(text, { o: {} }));
    } catch {
      return 'error';
    }
  });
}
console.log(`cel-js: ${values(cel).join(' ')}; @marcbachmann/cel-js: ${values(other).join(' ')}`);
JS
seen=$(node finding.mjs)
wanted='cel-js: 3.5 9007199254740992 error; @marcbachmann/cel-js: 3 9007199254740993 true'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
