#!/bin/sh
# bytes 3.1.2 (JavaScript), by which servers read sizes: sizes as a Kubernetes manifest has them.
# Behaviour: gb, and GB, are 2^30, but 1Gi, 1GiB and 1G are one byte, 512Mi is 512: a suffix that it does not know is left out and
# the number counts as bytes. One would have guessed null, which is what it gives for a text that is no size; a limit of a body or
# a cache that was copied from a manifest is so small that each request is refused.
# Output seen: 1gb: 1073741824; 1Gi: 1; 1GiB: 1; 1G: 1; 512Mi: 512; x: null
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit bytes@3.1.2 > /dev/null
cat > finding.mjs <<'JS'
import bytes from 'bytes';

console.log(['1gb', '1Gi', '1GiB', '1G', '512Mi', 'x'].map((text) => `${text}: ${bytes(text)}`).join('; '));
JS
seen=$(node finding.mjs)
wanted='1gb: 1073741824; 1Gi: 1; 1GiB: 1; 1G: 1; 512Mi: 512; x: null'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
