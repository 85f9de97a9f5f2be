// Answers how the libraries that Kubernetes uses read what people write: a question and an answer a line, as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

func answer(what, text string) (any, error) {
	switch what {
	case "yaml":
		read, err := yaml.YAMLToJSON([]byte(text))
		return json.RawMessage(read), err
	case "selector":
		_, err := labels.Parse(text)
		return nil, err
	case "duration":
		length, err := time.ParseDuration(text)
		return length.Seconds(), err
	default: // a word for insecure-skip-tls-verify
		cluster := "{server: https://h, insecure-skip-tls-verify: " + text + "}"
		config, err := clientcmd.Load([]byte("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: " + cluster + "\n"))
		if err != nil {
			return nil, err
		}
		return config.Clusters["c"].InsecureSkipTLSVerify, nil
	}
}

func main() {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for in.Scan() {
		var question [2]string
		if err := json.Unmarshal(in.Bytes(), &question); err != nil {
			panic(err)
		}
		read, err := answer(question[0], question[1])
		if err != nil {
			read = nil
		}
		if err := out.Encode([]any{err == nil, read}); err != nil {
			panic(err)
		}
	}
}
