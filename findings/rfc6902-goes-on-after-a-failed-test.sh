#!/bin/sh
# rfc6902 5.4.0 (JavaScript), applyPatch: a patch whose second operation is a test that fails.
# Behaviour: the RFC that the package is named after wants the whole patch to fail. Here the operations before the test and those
# behind it are applied to the object; the failed test is an entry of the answer, and nothing is thrown.
# Output seen: TestError; {"a":1,"b":1,"c":1}
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit rfc6902@5.4.0 > /dev/null
cat > finding.mjs <<'JS'
import { applyPatch } from 'rfc6902';

const object = { a: 1 };
const errors = applyPatch(object, [
  { op: 'add', path: '/b', value: 1 },
  { op: 'test', path: '/a', value: 2 },
  { op: 'add', path: '/c', value: 1 },
]);
console.log(errors.filter(Boolean).map((error) => error.name).join(' ') + '; ' + JSON.stringify(object));
JS
seen=$(node finding.mjs)
wanted='TestError; {"a":1,"b":1,"c":1}'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
