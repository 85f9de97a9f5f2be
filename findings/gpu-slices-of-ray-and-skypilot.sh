#!/bin/sh
# ray 2.60.0 and skypilot 0.14.1 (Python): the kind of GPU that they see in the name that NVIDIA's driver gives, as GPU Feature
# Discovery writes it into the label nvidia.com/gpu.product of a node.
# Behaviour: of a MIG slice both read the GPU that it is cut from: a seventh of an A100, with 10 GB, is an A100 for Ray and an
# A100-80GB for SkyPilot, though their names have the size where it matters. Ray gives cards of two generations, with 24 and 48
# GB, one name. One would have guessed that a slice is not what it is cut from: a job that asks for the kind may start on the
# slice, and ends for want of memory.
# Output seen: A100 of 80 GB and its slice: Ray A100, SkyPilot A100-80GB; H100 and its slice: H100, H100-80GB; Quadro RTX 6000 and
# RTX 6000 Ada: Ray RTX-6000
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.9.5  # pip alone takes minutes for these two
HOME=$folder own/bin/uv pip install --quiet --python own/bin/python ray==2.60.0 "skypilot[kubernetes]==0.14.1"
cat > finding.py <<'PY'
from ray._private.accelerators.nvidia_gpu import NvidiaGPUAcceleratorManager
from sky.provision.kubernetes.utils import GFDLabelFormatter

for name in (
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "Quadro RTX 6000",
    "NVIDIA RTX 6000 Ada Generation",
):
    ray = NvidiaGPUAcceleratorManager._gpu_name_to_accelerator_type(name)
    sky = GFDLabelFormatter.get_accelerator_from_label_value(name.replace(" ", "-"))
    print(f"{name}: Ray {ray}, SkyPilot {sky}")
PY
seen=$(HOME=$folder own/bin/python finding.py)
wanted='NVIDIA A100-SXM4-80GB: Ray A100, SkyPilot A100-80GB
NVIDIA A100-SXM4-80GB MIG 1g.10gb: Ray A100, SkyPilot A100-80GB
NVIDIA H100 80GB HBM3: Ray H100, SkyPilot H100-80GB
NVIDIA H100 80GB HBM3 MIG 1g.10gb: Ray H100, SkyPilot H100-80GB
Quadro RTX 6000: Ray RTX-6000, SkyPilot QUADRO-RTX6000
NVIDIA RTX 6000 Ada Generation: Ray RTX-6000, SkyPilot RTX6000-ADA-GENERATION'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
