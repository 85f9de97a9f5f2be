#!/bin/sh
# python-hcl2 8.1.4 (Python) and @cdktf/hcl2json 0.21.0 (JavaScript, with HashiCorp's own parser): one Nomad job, as data.
# Behaviour: by Python's loads() a text keeps the quotes that it has in the file, so type = "batch" is not equal to "batch" and the
# job is found under a key of nine letters; a heredoc keeps its markers, 1e3 is the text ${1e3}, and each block has a member
# __is_block__ more. (An option, strip_string_quotes, takes the quotes off.) hcl2json has the text, its lines and 1000. One would
# have guessed that both give the values; it matters to who reads job files to schedule what is in them elsewhere.
# Output seen: python: key "example", type "batch", limit ${1e3}, note "<<EOT\na\nEOT", __is_block__ True; hcl2json: key example,
# type batch, limit 1000, note a\n, __is_block__ undefined
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check python-hcl2==8.1.4
npm install --silent --no-fund --no-audit @cdktf/hcl2json@0.21.0 > /dev/null
cat > example.hcl <<'HCL'
job "example" {
  type = "batch"
  meta {
    limit = 1e3
    note  = <<EOT
a
EOT
  }
}
HCL
cat > finding.py <<'PY'
import hcl2

with open("example.hcl") as file:
    [(key, job)] = hcl2.loads(file.read())["job"][0].items()
meta = job["meta"][0]
said = f"python: key {key}, type {job['type']}, limit {meta['limit']}, note {meta['note']}, __is_block__ {job.get('__is_block__')}"
print(said.replace("\n", "\\n"))
PY
cat > finding.cjs <<'JS'
const { readFileSync } = require('node:fs');
const { parse } = require('@cdktf/hcl2json');

parse('example.hcl', readFileSync('example.hcl', 'utf8')).then((read) => {
  const [[key, [job]]] = Object.entries(read.job);
  const { limit, note } = job.meta[0];
  const said = `hcl2json: key ${key}, type ${job.type}, limit ${limit}, note ${note}, __is_block__ ${job.__is_block__}`;
  console.log(said.replaceAll('\n', '\\n'));
  process.exit();
});
JS
seen=$(own/bin/python finding.py; node finding.cjs)
wanted='python: key "example", type "batch", limit ${1e3}, note "<<EOT\na\nEOT", __is_block__ True
hcl2json: key example, type batch, limit 1000, note a\n, __is_block__ undefined'
printf '%s\n' "$seen"
[ "$seen" = "$wanted" ] || { printf 'it has changed; it was %s\n' "$wanted" >&2; exit 1; }
