"""A release without its uploads: `python -m tests.release DIST` says what lies in DIST, and what to push where.

`nox -s release` builds and checks what is in there. Nothing here needs a registry.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import yaml

from tests.controlplane.binaries import find_helm

ROOT: Final = Path(__file__).parents[1]
CHART: Final = ROOT / "charts" / "multikueued"


def versions(root: Path = ROOT) -> dict[str, str]:
    """What each place says that the version is; a release has one."""
    chart = yaml.safe_load((root / "charts/multikueued/Chart.yaml").read_text())
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    heading = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    image = re.search(r"docker push \S+:(\S+)", (root / "docs/operating.md").read_text())
    return {
        "pyproject.toml": str(project["version"]),
        "Chart.yaml, version": str(chart["version"]),
        "Chart.yaml, appVersion": str(chart["appVersion"]),
        "CHANGELOG.md": heading[1] if heading else "",
        "docs/operating.md": image[1] if image else "",
    }


def undated(root: Path = ROOT) -> bool:
    """Whether the CHANGELOG still calls its newest version unreleased."""
    return re.search(r"^## \S+ \(unreleased\)", (root / "CHANGELOG.md").read_text(), re.MULTILINE) is not None


def steps(dist: Path, version: str) -> str:
    """What a person has to do, in order, with the files in a folder."""
    files = sorted(file for file in dist.iterdir() if file.suffix in (".whl", ".gz", ".tgz"))
    sums = "\n".join(f"  {hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files)
    chart = dist / f"multikueued-{version}.tgz"
    packages = " ".join(str(file) for file in files if file != chart)
    date = "1. Put the date of today behind the version in CHANGELOG.md, and commit.\n" if undated() else "1. -\n"
    return f"""\
multikueue {version} is in {dist}:
{sums}

Nothing was uploaded. What is left for a person, with REGISTRY for yours:

{date}2. git tag --sign v{version} && git push origin v{version}
3. The image: docker buildx build --push --provenance=mode=max --sbom=true
     --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:DIGEST --tag REGISTRY/multikueue:{version} .
   Note the digest that it prints, and sign that, not the tag: cosign sign REGISTRY/multikueue@sha256:DIGEST
4. The chart: helm push {chart} oci://REGISTRY/charts, and cosign sign REGISTRY/charts/multikueued@sha256:DIGEST
5. The packages: twine upload {packages}
   With attestations where the workflow of the repository publishes them (trusted publishing): it needs no token.
6. Install each from where it is now, and run multikueue demo; then tell people.
"""


def main(dist: Path) -> int:
    """Put the chart beside the packages and say what is left. Exit code 1 if the places of the version do not agree."""
    stated = versions()
    if len(set(stated.values())) != 1:
        lines = (f"  {place}: {version}\n" for place, version in stated.items())
        sys.stderr.writelines(("the version is not one:\n", *lines))
        return 1
    subprocess.run([find_helm(), "package", CHART, "--destination", dist], check=True, stdout=subprocess.DEVNULL)
    sys.stdout.write(steps(dist, stated["pyproject.toml"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
