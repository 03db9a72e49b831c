package kinds

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

const hostnameLabel = "kubernetes.io/hostname"

func prepareSliceCreate(obj catalog.Object, _ catalog.Env) { dropTopology(obj, nil) }

// prepareSliceUpdate counts changes of labels too.
func prepareSliceUpdate(obj, old catalog.Object, _ string, _ catalog.Env) {
	if !sameBeyond(obj, old, "metadata") ||
		!reflect.DeepEqual(catalog.At(obj, "metadata", "labels"), catalog.At(old, "metadata", "labels")) {
		raiseGeneration(obj, old)
	}
	if !reflect.DeepEqual(obj["endpoints"], old["endpoints"]) {
		dropTopology(obj, old)
	}
}

// dropTopology drops a field that this version shows and does not take. The node that an endpoint of old was on stays
// known.
func dropTopology(obj, old catalog.Object) {
	known := map[string]bool{}
	for _, e := range catalog.Objects(old["endpoints"]) {
		known[catalog.Text(e, "deprecatedTopology", hostnameLabel)] = true
	}
	for _, e := range catalog.Objects(obj["endpoints"]) {
		node := catalog.Text(e, "deprecatedTopology", hostnameLabel)
		if e["nodeName"] == nil && node != "" && known[node] && len(validation.IsDNS1123Subdomain(node)) == 0 {
			e["nodeName"] = node
		}
		delete(e, "deprecatedTopology")
	}
}
