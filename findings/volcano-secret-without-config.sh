#!/bin/sh
# volcano.sh/apis v1.13.0 (Go), pkg/apis/helpers: CreateOrUpdateSecret and CreateOrUpdateConfigMap, by which Volcano's job plugins
# hand files to a job.
# Behaviour: of the Secret one key is compared, "config": where that is the same, or is in neither, nothing is written and the
# answer is nil. So a Secret with a new token keeps the old one; the ConfigMap beside it, with the same data, gets the new one. One
# would have guessed that both compare what they are given; it matters to who renews the keys of a job, as for MPI over SSH, and
# keeps their "config".
# Output seen: token: secret old, config map new; config: secret new, config map new
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export CGO_ENABLED=0
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"volcano.sh/apis/pkg/apis/batch/v1alpha1"
	"volcano.sh/apis/pkg/apis/helpers"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx, client := context.Background(), fake.NewClientset()
	job := &v1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "example"}}
	for _, key := range []string{"token", "config"} {
		for _, value := range []string{"old", "new"} {
			must(0, helpers.CreateOrUpdateSecret(job, client, map[string][]byte{key: []byte(value)}, key))
			must(0, helpers.CreateOrUpdateConfigMap(job, client, map[string]string{key: value}, key))
		}
		secret := must(client.CoreV1().Secrets("ns").Get(ctx, key, metav1.GetOptions{}))
		configMap := must(client.CoreV1().ConfigMaps("ns").Get(ctx, key, metav1.GetOptions{}))
		fmt.Printf("%s: secret %s, config map %s\n", key, secret.Data[key], configMap.Data[key])
	}
}
GO
go mod init finding > /dev/null 2>&1
go get volcano.sh/apis@v1.13.0 > /dev/null 2>&1
go mod tidy > /dev/null 2>&1
seen=$(go run .)
wanted='token: secret old, config map new
config: secret new, config map new'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
