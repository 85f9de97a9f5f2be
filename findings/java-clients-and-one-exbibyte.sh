#!/bin/sh
# io.kubernetes:client-java-api 24.0.0 and io.fabric8:kubernetes-model-core 7.9.0 (Java), the two clients of Java, and
# k8s.io/apimachinery v0.36.3 (Go): 1Ei, as people write it for "more than there is", for a quota or a volume.
# Behaviour: the one reads it and cannot write it, so an object that has it is got and cannot be put back; with 1025Pi it can. The
# other keeps the text, and its bytes are 24 too many, as it counts with 16 digits, with which 1Ei is not 1152921504606846976 bytes.
# One would have guessed that what an API server has taken goes through each client as it is.
# Output seen: 1Ei: IllegalArgumentException, 1152921504606847000, 1152921504606846976; 1025Pi: 1025Pi, 1154047404513689600, ...
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
      <groupId>io.kubernetes</groupId>
      <artifactId>client-java-api</artifactId>
      <version>24.0.0</version>
    </dependency>
    <dependency>
      <groupId>io.fabric8</groupId>
      <artifactId>kubernetes-model-core</artifactId>
      <version>7.9.0</version>
    </dependency>
  </dependencies>
</project>
XML
cat > Finding.java <<'JAVA'
import io.kubernetes.client.custom.Quantity;

public class Finding {
  public static void main(String[] texts) {
    for (String text : texts) {
      String written;
      try {
        written = Quantity.fromString(text).toSuffixedString();
      } catch (IllegalArgumentException error) {
        written = error.getClass().getSimpleName();
      }
      var other = new io.fabric8.kubernetes.api.model.Quantity(text);
      System.out.println(text + ": client-java " + written + ", fabric8 " + other.getNumericalAmount().toPlainString());
    }
  }
}
JAVA
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range os.Args[1:] {
		quantity := resource.MustParse(text)
		fmt.Println("Go", quantity.Value())
	}
}
GO
go mod init finding > /dev/null 2>&1
go get k8s.io/apimachinery@v0.36.3 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
mvn --quiet --batch-mode dependency:build-classpath -Dmdep.outputFile=classpath > /dev/null
set -- 1Ei 1025Pi
java -cp "$(cat classpath)" Finding.java "$@" > java 2> /dev/null
go run . "$@" > go
seen=$(paste -d ',' java go | sed 's/,Go/, Go/')
wanted='1Ei: client-java IllegalArgumentException, fabric8 1152921504606847000, Go 1152921504606846976
1025Pi: client-java 1025Pi, fabric8 1154047404513689600, Go 1154047404513689600'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
