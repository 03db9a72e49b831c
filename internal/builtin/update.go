package builtin

import (
	"reflect"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// countChange raises metadata.generation if spec has changed.
func countChange(obj, old catalog.Object) {
	if !reflect.DeepEqual(obj["spec"], old["spec"]) {
		raiseGeneration(obj, old)
	}
}

func raiseGeneration(obj, old catalog.Object) {
	n, _ := child(old, "metadata")["generation"].(int64)
	child(obj, "metadata")["generation"] = n + 1
}

// prepareDeploymentUpdate counts changes of annotations too, which the deployment controller copies to replica sets.
func prepareDeploymentUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		keep(child(obj, "metadata"), child(old, "metadata"), "labels")
		return
	}
	keep(obj, old, "status")
	if !reflect.DeepEqual(obj["spec"], old["spec"]) || !reflect.DeepEqual(child(obj, "metadata")["annotations"], child(old, "metadata")["annotations"]) {
		raiseGeneration(obj, old)
	}
}

// prepareJobCreate makes a selector that only the job's own pods match, unless the job says that it brings its own.
func prepareJobCreate(obj catalog.Object, _ catalog.Env) {
	obj["status"] = map[string]any{}
	spec := child(obj, "spec")
	if spec["manualSelector"] == true {
		return
	}
	name, uid := text(obj, "metadata", "name"), text(obj, "metadata", "uid")
	labels := child(child(child(spec, "template"), "metadata"), "labels")
	orElse(labels, "job-name", name)
	orElse(labels, "batch.kubernetes.io/job-name", name)
	orElse(labels, "controller-uid", uid)
	orElse(labels, "batch.kubernetes.io/controller-uid", uid)
	orElse(child(child(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid)
}
