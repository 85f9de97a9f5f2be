// Answers what programs that read statuses make of objects: an object a line in, as JSON, and two verdicts a line out.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(line); err != nil {
			panic(err)
		}
		computed, err := status.Compute(obj)
		if err != nil {
			panic(err)
		}
		verdicts := []string{computed.Status.String(), ""} // kinds that the engine has no rule for have no health
		if found, err := health.GetResourceHealth(obj, nil); err != nil {
			panic(err)
		} else if found != nil {
			verdicts[1] = string(found.Status)
		}
		if err := out.Encode(verdicts); err != nil {
			panic(err)
		}
	}
}
