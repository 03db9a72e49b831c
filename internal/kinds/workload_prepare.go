package kinds

import (
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// prepareDeploymentUpdate counts changes of annotations too, which the deployment controller copies to replica sets.
func prepareDeploymentUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		keep(child(obj, "metadata"), child(old, "metadata"), "labels")
		return
	}
	keep(obj, old, "status")
	if !reflect.DeepEqual(obj["spec"], old["spec"]) ||
		!reflect.DeepEqual(child(obj, "metadata")["annotations"], child(old, "metadata")["annotations"]) {
		raiseGeneration(obj, old)
	}
}

// templateGeneration counts the changes of a daemon set's template. It is a field of a version that is no longer
// served, and lives on in this annotation.
const templateGeneration = appsv1.DeprecatedTemplateGeneration

func prepareDaemonSetCreate(obj catalog.Object, _ catalog.Env) {
	resetStatus[appsv1.DaemonSet](obj)
	setTemplateGeneration(obj, max(1, templateGenerationOf(obj)))
}

func prepareDaemonSetUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		setTemplateGeneration(obj, templateGenerationOf(old))
		return
	}
	keep(obj, old, "status")
	n := templateGenerationOf(old)
	if !reflect.DeepEqual(child(obj, "spec")["template"], child(old, "spec")["template"]) {
		n++
	}
	setTemplateGeneration(obj, n)
	countChange(obj, old)
}

func templateGenerationOf(obj catalog.Object) int64 {
	n, err := strconv.ParseInt(catalog.Text(obj, "metadata", "annotations", templateGeneration), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(obj catalog.Object, n int64) {
	meta := child(obj, "metadata")
	annotations := copyOf(child(meta, "annotations"))
	annotations[templateGeneration] = strconv.FormatInt(n, 10)
	meta["annotations"] = annotations
}

func prepareStatefulSetCreate(obj catalog.Object, _ catalog.Env) {
	resetStatus[appsv1.StatefulSet](obj)
	dropMaxUnavailable(obj)
}

func prepareStatefulSetUpdate(obj, old catalog.Object, subresource string, _ catalog.Env) {
	if subresource == "status" {
		keep(obj, old, "spec")
		return
	}
	keep(obj, old, "status")
	if rollingUpdate(old)["maxUnavailable"] == nil {
		dropMaxUnavailable(obj)
	}
	countChange(obj, old)
}

// dropMaxUnavailable drops what Kubernetes has behind a feature gate.
func dropMaxUnavailable(obj catalog.Object) { delete(rollingUpdate(obj), "maxUnavailable") }

func rollingUpdate(obj catalog.Object) catalog.Object {
	spec, _ := obj["spec"].(map[string]any)
	strategy, _ := spec["updateStrategy"].(map[string]any)
	rolling, _ := strategy["rollingUpdate"].(map[string]any)
	return rolling
}

// prepareJobCreate makes a selector that only the job's own pods match, unless the job says that it brings its own. A
// job that was given its template's labels, because it came without, gets those that are added here too: Kubernetes
// has them in one map. podsStay is the warning for a deletion of jobs that says nothing of their pods.
const podsStay = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

func prepareJobCreate(obj catalog.Object, _ catalog.Env) {
	defer func() {
		labelAsTemplate(obj) // whose labels may all have come now
		separateLabels(obj)
	}()
	obj["status"] = map[string]any{}
	spec := child(obj, "spec")
	if spec["manualSelector"] == true {
		return
	}
	name, uid := catalog.Text(obj, "metadata", "name"), catalog.Text(obj, "metadata", "uid")
	labels := child(child(child(spec, "template"), "metadata"), "labels")
	orElse(labels, "job-name", name)
	orElse(labels, "batch.kubernetes.io/job-name", name)
	orElse(labels, "controller-uid", uid)
	orElse(labels, "batch.kubernetes.io/controller-uid", uid)
	orElse(child(child(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid)
}
