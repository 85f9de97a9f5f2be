#!/bin/sh
# common-expression-language 0.10.0 (Python, import cel): where values become texts otherwise than in cel-go, which
# Kubernetes runs. cel-go: "5400s", "...Z", "true" and 1 (the CEL specification counts code points).
# Behaviour: a duration is written as Go writes one, a time in UTC ends in +00:00, string(true) is no function, and size()
# of a text counts bytes.
# Output seen: 1h30m0s 2026-01-02T03:04:05+00:00 error 2
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check common-expression-language==0.10.0
cat > finding.py <<'PY'
import cel


def value(text):
    try:
        return cel.evaluate(text, {})
    except Exception:
        return "error"


texts = "string(duration('90m'))", "string(timestamp('2026-01-02T03:04:05Z'))", "string(true)", "size('\u00e9')"
print(*map(value, texts))
PY
seen=$(own/bin/python finding.py)
wanted='1h30m0s 2026-01-02T03:04:05+00:00 error 2'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
