// Argo CD's own comparison (gitops-engine) of manifests with live objects.
//
//	argocd-diff <PAIRS             as Argo CD compares without ServerSideApply=true
//	argocd-diff KUBECONFIG <PAIRS  as it compares with ServerSideApply=true, by the schema of this API server
//
// PAIRS is a JSON list of {"config": the manifest in Git, "live": the object in the cluster}. The program writes a JSON
// list of {"modified", "live", "predicted"}: "modified" means OutOfSync, "predicted" is the object after a sync.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
)

// manager is Argo CD's name in the managed fields of the objects that it applies.
const manager = "argocd-controller"

type pair struct {
	Config *unstructured.Unstructured `json:"config"`
	Live   *unstructured.Unstructured `json:"live"`
}

type result struct {
	Modified  bool            `json:"modified"`
	Live      json.RawMessage `json:"live"`
	Predicted json.RawMessage `json:"predicted"`
}

// serverSideApply returns the options that Argo CD sets for an Application with ServerSideApply=true.
func serverSideApply(kubeconfig string) ([]diff.Option, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	_, parser, err := (&kube.KubectlCmd{}).LoadOpenAPISchema(config)
	if err != nil {
		return nil, err
	}
	return []diff.Option{
		diff.WithStructuredMergeDiff(true), diff.WithGVKParser(parser), diff.WithManager(manager),
	}, nil
}

func run(arguments []string) error {
	var options []diff.Option
	if len(arguments) > 0 {
		var err error
		if options, err = serverSideApply(arguments[0]); err != nil {
			return err
		}
	}
	var pairs []pair
	if err := json.NewDecoder(os.Stdin).Decode(&pairs); err != nil {
		return fmt.Errorf("standard input is no list of pairs: %w", err)
	}
	results := make([]result, 0, len(pairs))
	for _, one := range pairs {
		found, err := diff.Diff(one.Config, one.Live, options...)
		if err != nil {
			return fmt.Errorf("%s: %w", one.Config.GetName(), err)
		}
		results = append(results, result{found.Modified, found.NormalizedLive, found.PredictedLive})
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "argocd-diff:", err)
		os.Exit(1)
	}
}
