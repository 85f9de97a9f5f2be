#!/bin/sh
# prometheus-client 0.26.0 (Python), parser of the text format: counters whose name does not end in _total.
# Behaviour: the sample gets the name NAME_total, which the page does not have, so who looks for a counter of a GPU exporter by
# its name finds nothing; x_total keeps its sample's name, and its family is called x. Gauges keep theirs.
# Output seen: DCGM_FI_DEV_NVLINK_ERRORS: DCGM_FI_DEV_NVLINK_ERRORS_total; x: x_total; DCGM_FI_DEV_GPU_UTIL: DCGM_FI_DEV_GPU_UTIL
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check prometheus-client==0.26.0
cat > finding.py <<'PY'
from prometheus_client.parser import text_string_to_metric_families

page = """# TYPE DCGM_FI_DEV_NVLINK_ERRORS counter
DCGM_FI_DEV_NVLINK_ERRORS{gpu="0"} 3
# TYPE x_total counter
x_total 4
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 90
"""
print("; ".join(f"{family.name}: {family.samples[0].name}" for family in text_string_to_metric_families(page)))
PY
seen=$(own/bin/python finding.py)
wanted='DCGM_FI_DEV_NVLINK_ERRORS: DCGM_FI_DEV_NVLINK_ERRORS_total; x: x_total; DCGM_FI_DEV_GPU_UTIL: DCGM_FI_DEV_GPU_UTIL'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
