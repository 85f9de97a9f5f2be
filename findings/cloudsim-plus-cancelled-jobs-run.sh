#!/bin/sh
# org.cloudsimplus:cloudsimplus 8.5.7 (Java), SwfWorkloadFileReader: four jobs of a trace in the Standard Workload Format, in
# which field 4 is the time that a job ran, 5 the processors that it got, 8 those that it asked for, 11 its state and -1 "not
# known".
# Behaviour: a job gets the processors that it asked for, and each of them works for the whole time: one that asked for 16 and had
# 8 for an hour does 16 hours of work. One that was cancelled in the queue and never ran runs for a second. That job 4 waits for
# job 1 (fields 17 and 18) is lost. One would have guessed the work that was done, and no job that never began: a replay has
# another load than its trace.
# Output seen: job 1: at 0 s, 16 processors, 57600 s of work; job 2: 4 processors, 1 s each; job 3, that asked for an unknown
# number: 4 processors; job 4: at 240 s
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId>
  <artifactId>finding</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.cloudsimplus</groupId>
      <artifactId>cloudsimplus</artifactId>
      <version>8.5.7</version>
    </dependency>
  </dependencies>
</project>
XML
cat > trace.swf <<'SWF'
; Version: 2.2
; MaxProcs: 64
1 0 10 3600 8 3500 -1 16 7200 -1 1 1 1 1 1 1 -1 -1
2 60 300 -1 -1 -1 -1 4 600 -1 5 1 1 1 1 1 -1 -1
3 120 5 100 4 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1
4 240 3700 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 1 30
SWF
cat > Finding.java <<'JAVA'
import org.cloudsimplus.traces.SwfWorkloadFileReader;

public class Finding {
  public static void main(String[] files) {
    int speed = 1000; // million instructions that a processor does in a second
    for (var job : SwfWorkloadFileReader.getInstance(files[0], speed).generateWorkload()) {
      System.out.printf("job %d: at %.0f s, %d processors, %d s each, %d s of work%n", job.getId(), job.getSubmissionDelay(),
          job.getPesNumber(), job.getLength() / speed, job.getTotalLength() / speed);
    }
  }
}
JAVA
mvn --quiet --batch-mode dependency:build-classpath -Dmdep.outputFile=classpath > /dev/null
seen=$(java -cp "$(cat classpath)" Finding.java trace.swf 2> /dev/null | grep '^job')
wanted='job 1: at 0 s, 16 processors, 3600 s each, 57600 s of work
job 2: at 60 s, 4 processors, 1 s each, 4 s of work
job 3: at 120 s, 4 processors, 100 s each, 400 s of work
job 4: at 240 s, 4 processors, 100 s each, 400 s of work'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
