#!/bin/sh
# cdk8s-plus-33 2.5.57 with cdk8s 2.70.106 and constructs 10.4.2 (JavaScript), which writes manifests: the resources of a Job's
# container, as they are by default and where one asks for more memory.
# Behaviour: without resources there are requests and limits of CPU and memory. Who asks for 4Gi of memory, and for nothing else,
# gets just that: the request for a CPU is gone, and so are all limits. One would have guessed that the default holds for what is
# not named, as the defaults of a LimitRange do; a queue with quota for CPUs counts none for the Job.
# Output seen: by default: limits cpu=1500m memory=2048Mi, requests cpu=1000m memory=512Mi; 4Gi of memory: requests memory=4096Mi
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --prefix "$folder" cdk8s-plus-33@2.5.57 cdk8s@2.70.106 constructs@10.4.2 > /dev/null
cat > finding.mjs <<'JS'
import { Size, Testing } from "cdk8s";
import { Job } from "cdk8s-plus-33";

function say(name, resources) {
  const chart = Testing.chart();
  new Job(chart, "job", { containers: [{ image: "busybox", resources }] });
  const written = Testing.synth(chart)[0].spec.template.spec.containers[0].resources;
  const amounts = (list) => Object.entries(list).map(([resource, amount]) => `${resource}=${amount}`).join(" ");
  console.log(`${name}: ${Object.entries(written).map(([list, values]) => `${list} ${amounts(values)}`).join(", ")}`);
}

say("by default", undefined);
say("4Gi of memory", { memory: { request: Size.gibibytes(4) } });
JS
seen=$(TMPDIR=$folder node finding.mjs)
wanted='by default: limits cpu=1500m memory=2048Mi, requests cpu=1000m memory=512Mi
4Gi of memory: requests memory=4096Mi'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
