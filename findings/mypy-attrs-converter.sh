#!/bin/sh
# mypy 2.4.1 with attrs 26.1.0 (Python): attrs.Converter around a named function.
# Behaviour: attrs takes it, and its types fit; mypy's plugin for attrs reports an unsupported converter, so what needs
# takes_self or takes_field has no form that passes. The function alone passes.
# Output seen: attrs: 4 4; errors of mypy: 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check mypy==2.4.1 attrs==26.1.0
cat > finding.py <<'PY'
import attrs


def doubled(value: int) -> int:
    return 2 * value


@attrs.define
class Sum:
    plain: int = attrs.field(converter=doubled)
    total: int = attrs.field(converter=attrs.Converter(doubled))


print(f"attrs: {Sum(2, 2).plain} {Sum(2, 2).total}")
PY
ran=$(own/bin/python finding.py)
errors=$(own/bin/mypy --strict finding.py | grep -c ': error:' || true)
seen="$ran; errors of mypy: $errors"
wanted='attrs: 4 4; errors of mypy: 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
