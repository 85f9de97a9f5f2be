#!/bin/sh
# io.fabric8:kubernetes-model-core 7.9.0 (Java), its model of metav1.Duration, and metav1.Duration of k8s.io/apimachinery v0.36.3
# (Go): durations as people write them.
# Behaviour: Java looks for numbers with a unit and passes over what is between them, so 1.5h is five hours and -1h is one hour; a
# day and a space are read, which are errors in Go, and 0 is an error. Each is without a word. One would have guessed that a model
# of Go's type reads what Go reads; an operator in Java waits five hours for what a controller in Go ends after one and a half.
# Output seen: 1h30m: PT1H30M, 1h30m0s; 1.5h: PT5H, 1h30m0s; 2.25s: PT25S, 2.25s; -1h: PT1H, -1h0m0s; 1d: PT24H, error; 0: error,
# 0s
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId>
  <artifactId>finding</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>io.fabric8</groupId>
      <artifactId>kubernetes-model-core</artifactId>
      <version>7.9.0</version>
    </dependency>
  </dependencies>
</project>
XML
cat > Finding.java <<'JAVA'
import io.fabric8.kubernetes.api.model.Duration;
import java.text.ParseException;

public class Finding {
  public static void main(String[] texts) {
    for (String text : texts) {
      String said;
      try {
        said = Duration.parse(text).getDuration().toString();
      } catch (ParseException error) {
        said = "error";
      }
      System.out.println(text + ": Java " + said);
    }
  }
}
JAVA
cat > main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, text := range os.Args[1:] {
		var duration metav1.Duration
		if json.Unmarshal([]byte(`"`+text+`"`), &duration) != nil {
			fmt.Println("Go error")
			continue
		}
		fmt.Println("Go", duration.Duration)
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
mvn --quiet --batch-mode dependency:build-classpath -Dmdep.outputFile=classpath > /dev/null
set -- 1h30m 1.5h 2.25s -1h 1d 0
java -cp "$(cat classpath)" Finding.java "$@" > java 2> /dev/null
go run . "$@" > go
seen=$(paste -d ',' java go | sed 's/,/, /')
wanted='1h30m: Java PT1H30M, Go 1h30m0s
1.5h: Java PT5H, Go 1h30m0s
2.25s: Java PT25S, Go 2.25s
-1h: Java PT1H, Go -1h0m0s
1d: Java PT24H, Go error
0: Java error, Go 0s'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
