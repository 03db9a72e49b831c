package volume_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	classes = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

type (
	object  = map[string]any
	objects = map[string]*unstructured.Unstructured
)

// claim returns a claim of 1Gi. The class "-" means no class at all.
func claim(name, class string) *unstructured.Unstructured {
	o := controltest.Object("v1", "PersistentVolumeClaim", "default", name)
	spec := object{
		"accessModes": []any{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Gi"}},
	}
	if class != "-" {
		spec["storageClassName"] = class
	}
	o.Object["spec"] = spec
	return o
}

// disk returns a volume of 2Gi without a class.
func disk(name, path, reclaim string) *unstructured.Unstructured {
	o := controltest.Object("v1", "PersistentVolume", "", name)
	o.Object["spec"] = object{
		"accessModes": []any{"ReadWriteOnce"}, "capacity": object{"storage": "2Gi"},
		"persistentVolumeReclaimPolicy": reclaim, "hostPath": object{"path": path},
	}
	return o
}

func class(name, provisioner, mode string) *unstructured.Unstructured {
	o := controltest.Object("storage.k8s.io/v1", "StorageClass", "", name)
	o.Object["provisioner"], o.Object["volumeBindingMode"] = provisioner, mode
	return o
}

// user returns a pod that has a claim.
func user(name, of string) *unstructured.Unstructured {
	o := controltest.Object("v1", "Pod", "default", name)
	o.Object["spec"] = object{
		"containers": []any{object{"name": "c", "image": "i"}},
		"volumes":    []any{object{"name": "v", "persistentVolumeClaim": object{"claimName": of}}},
	}
	return o
}

func field(o *unstructured.Unstructured, path string) string {
	if o == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(o.Object, strings.Split(path, ".")...)
	return s
}

// phase waits for a phase and returns the object.
func phase(c *controltest.Cluster, gvr schema.GroupVersionResource, name, want string) *unstructured.Unstructured {
	c.Helper()
	namespace := "default"
	if gvr == volumes {
		namespace = ""
	}
	var out *unstructured.Unstructured
	c.When(gvr, namespace, name+" to be "+want, func(all objects) bool {
		out = all[name]
		return field(out, "status.phase") == want
	})
	return out
}

func reported(c *controltest.Cluster, about, reason, message string) {
	c.Helper()
	c.When(controltest.Events, "default", reason+" of "+about+": "+message, func(all objects) bool {
		for _, ev := range all {
			if field(ev, "involvedObject.name") == about && field(ev, "reason") == reason &&
				strings.Contains(field(ev, "message"), message) {
				return true
			}
		}
		return false
	})
}

func remove(c *controltest.Cluster, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	c.Helper()
	c.Delete(gvr, o, "")
}

// TestProvisioner checks that a claim without a class gets a volume of the server's default class, and that the volume
// is resized and deleted with the claim.
func TestProvisioner(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	made := c.Create(claims, claim("data", "-"))
	bound := phase(c, claims, "data", "Bound")
	name := "pvc-" + string(made.GetUID())
	if field(bound, "spec.volumeName") != name || field(bound, "spec.storageClassName") != "standard" ||
		field(bound, "status.capacity.storage") != "1Gi" {
		t.Errorf("%v", bound.Object)
	}
	for _, a := range []string{
		"pv.kubernetes.io/bind-completed yes", "pv.kubernetes.io/bound-by-controller yes",
		"volume.kubernetes.io/storage-provisioner simulated.bowsprit.dev",
		"volume.beta.kubernetes.io/storage-provisioner simulated.bowsprit.dev",
	} {
		key, value, _ := strings.Cut(a, " ")
		if bound.GetAnnotations()[key] != value {
			t.Errorf("no %s: %v", a, bound.GetAnnotations())
		}
	}
	v := phase(c, volumes, name, "Bound")
	if v.GetAnnotations()["pv.kubernetes.io/provisioned-by"] != "simulated.bowsprit.dev" ||
		field(v, "spec.csi.driver") != "simulated.bowsprit.dev" || field(v, "spec.claimRef.name") != "data" ||
		field(v, "spec.persistentVolumeReclaimPolicy") != "Delete" {
		t.Errorf("%v", v.Object)
	}
	reported(c, "data", "ExternalProvisioning", "by the external provisioner 'simulated.bowsprit.dev'")
	reported(c, "data", "Provisioning", `provisioning volume for claim "default/data"`)
	reported(c, "data", "ProvisioningSucceeded", "Successfully provisioned volume "+name)

	if _, err := c.In(claims, "default").Patch(t.Context(), "data", types.MergePatchType,
		[]byte(`{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.When(claims, "default", "it to have grown", func(all objects) bool {
		return field(all["data"], "status.capacity.storage") == "3Gi"
	})
	c.When(volumes, "", "its volume to have grown", func(all objects) bool {
		return field(all[name], "spec.capacity.storage") == "3Gi"
	})
	remove(c, claims, bound)
	c.Until(claims, "default", "")
	c.Until(volumes, "", "")
}

// TestStatic checks that existing volumes are bound by size, and reclaimed by their own policy.
func TestStatic(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	c.Create(claims, claim("kept", ""))
	reported(c, "kept", "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
	c.Create(volumes, disk("kept", "/data", "Retain"))
	bound := phase(c, claims, "kept", "Bound")
	if field(bound, "status.capacity.storage") != "2Gi" || field(bound, "spec.volumeName") != "kept" {
		t.Errorf("%v", bound.Object)
	}
	remove(c, claims, bound)
	phase(c, volumes, "kept", "Released")
	// Another claim does not get it.
	second := claim("second", "")
	_ = unstructured.SetNestedField(second.Object, "kept", "spec", "volumeName")
	c.Create(claims, second)
	reported(c, "second", "FailedBinding", `volume "kept" already bound to a different claim.`)

	for _, one := range []struct{ name, path, reclaim, end string }{
		{"temporary", "/tmp/x", "Delete", ""},
		{"permanent", "/var/x", "Delete", "Failed"},
		{"recycled", "/data", "Recycle", "Available"},
	} {
		c.Create(volumes, disk(one.name, one.path, one.reclaim))
		phase(c, volumes, one.name, "Available")
		want := claim(one.name, "")
		_ = unstructured.SetNestedField(want.Object, one.name, "spec", "volumeName")
		c.Create(claims, want)
		remove(c, claims, phase(c, claims, one.name, "Bound"))
		c.When(volumes, "", one.name+" to be "+one.end, func(all objects) bool {
			return field(all[one.name], "status.phase") == one.end
		})
	}
	reported(c, "permanent", "VolumeFailedDelete",
		"host_path deleter only supports /tmp/.+ but received provided /var/x")

	wrong := claim("wrong", "")
	_ = unstructured.SetNestedField(wrong.Object, "recycled", "spec", "volumeName")
	_ = unstructured.SetNestedField(wrong.Object, "5Gi", "spec", "resources", "requests", "storage")
	c.Create(claims, wrong)
	reported(c, "wrong", "VolumeMismatch", `Cannot bind to requested volume "recycled": requested PV is too small`)
}

// TestLost checks that a bound claim without its volume is lost.
func TestLost(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	v := c.Create(volumes, disk("v", "/data", "Retain"))
	c.Create(claims, claim("data", ""))
	phase(c, claims, "data", "Bound")
	phase(c, volumes, "v", "Bound")
	remove(c, volumes, v)
	if _, err := c.In(volumes, "").Patch(t.Context(), "v", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	phase(c, claims, "data", "Lost")
	reported(c, "data", "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
}

// TestClasses checks that a claim without a class gets the default once there is one, and the events of waiting claims.
func TestClasses(t *testing.T) {
	own := class("own", "example.com/disk", "Immediate")
	c := controltest.Start(t, testserver.WithWorkloads(), func(config *bowsprit.Config) {
		config.Controllers.Enabled = []string{"*", "-simulated-provisioner"}
	})
	c.Until(classes, "", "")
	c.Create(claims, claim("early", "-"))
	c.Create(claims, claim("odd", "missing"))
	reported(c, "odd", "ProvisioningFailed", `storageclass.storage.k8s.io "missing" not found`)
	own.SetAnnotations(map[string]string{"storageclass.kubernetes.io/is-default-class": "true"})
	c.Create(classes, own)
	reported(c, "early", "ExternalProvisioning", "by the external provisioner 'example.com/disk'")
	c.When(claims, "default", "its class", func(all objects) bool {
		return field(all["early"], "spec.storageClassName") == "own"
	})
	c.Create(classes, class("none", "kubernetes.io/no-provisioner", "Immediate"))
	c.Create(claims, claim("none", "none"))
	reported(c, "none", "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner")
}

// TestEphemeral checks that an ephemeral volume has its own claim, which is deleted with its pod, and that an existing
// claim is not used.
func TestEphemeral(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	pod := func(name string) *unstructured.Unstructured {
		o := user(name, "")
		template := object{"metadata": object{"labels": object{"of": name}}, "spec": claim("", "-").Object["spec"]}
		_ = unstructured.SetNestedSlice(o.Object, []any{
			object{"name": "v", "ephemeral": object{"volumeClaimTemplate": template}},
		}, "spec", "volumes")
		return o
	}
	made := c.Create(controltest.Pods, pod("p"))
	phase(c, controltest.Pods, "p", "Running")
	own := phase(c, claims, "p-v", "Bound")
	if by := metav1.GetControllerOf(own); by == nil || by.UID != made.GetUID() || own.GetLabels()["of"] != "p" {
		t.Errorf("%v", own.Object)
	}
	other := c.Create(claims, claim("q-v", "-"))
	phase(c, claims, "q-v", "Bound")
	c.Create(controltest.Pods, pod("q"))
	reported(c, "q", "FailedScheduling", "PVC default/q-v was not created for pod default/q (pod is not owner)")
	remove(c, claims, other)
	phase(c, controltest.Pods, "q", "Running")
	remove(c, controltest.Pods, made)
	c.Until(claims, "default", "q-v")
}

// Pods wait for their claims, and claims of some classes for their pods.
func TestPods(t *testing.T) {
	clock := testserver.NewClock()
	c := controltest.Start(t, testserver.WithWorkloads("nodes=3"), testserver.WithClock(clock))
	c.Create(controltest.Pods, user("early", "data"))
	reported(c, "early", "FailedScheduling", `persistentvolumeclaim "data" not found`)
	c.Create(claims, claim("data", "none"))
	reported(c, "early", "FailedScheduling", "pod has unbound immediate PersistentVolumeClaims")
	static := disk("static", "/data", "Retain")
	_ = unstructured.SetNestedField(static.Object, "none", "spec", "storageClassName")
	_ = unstructured.SetNestedField(static.Object, object{"required": object{"nodeSelectorTerms": []any{
		object{"matchExpressions": []any{
			object{"key": "kubernetes.io/hostname", "operator": "In", "values": []any{"node-2"}},
		}},
	}}}, "spec", "nodeAffinity")
	c.Create(volumes, static)
	if p := phase(c, controltest.Pods, "early", "Running"); field(p, "spec.nodeName") != "node-2" {
		t.Errorf("it is on %s", field(p, "spec.nodeName"))
	}

	// The claim waits for a pod, and its volume is created for the node of the pod.
	c.Create(classes, class("late", "simulated.bowsprit.dev", "WaitForFirstConsumer"))
	c.Create(claims, claim("late", "late"))
	reported(c, "late", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
	c.Create(controltest.Pods, user("late", "late"))
	node := field(phase(c, controltest.Pods, "late", "Running"), "spec.nodeName")
	bound := phase(c, claims, "late", "Bound")
	if got := bound.GetAnnotations()["volume.kubernetes.io/selected-node"]; got != node {
		t.Errorf("made for %s, used on %s", got, node)
	}

	// Local volumes: each pod gets the volume of its node.
	c.Create(classes, class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"))
	for i := range 3 {
		local := static.DeepCopy()
		local.SetName(fmt.Sprint("local-", i))
		_ = unstructured.SetNestedField(local.Object, "local", "spec", "storageClassName")
		_ = unstructured.SetNestedField(local.Object, object{"required": object{"nodeSelectorTerms": []any{
			object{"matchExpressions": []any{object{
				"key": "kubernetes.io/hostname", "operator": "In", "values": []any{fmt.Sprint("node-", i)},
			}}},
		}}}, "spec", "nodeAffinity")
		c.Create(volumes, local)
	}
	nodes := map[string]bool{}
	for i := range 3 {
		name := fmt.Sprint("db-", i)
		c.Create(claims, claim(name, "local"))
		c.Create(controltest.Pods, user(name, name))
	}
	for i := range 3 {
		name := fmt.Sprint("db-", i)
		p := phase(c, controltest.Pods, name, "Running")
		nodes[field(p, "spec.nodeName")] = true
		volume := field(phase(c, claims, name, "Bound"), "spec.volumeName")
		if strings.TrimPrefix(volume, "local-") != strings.TrimPrefix(field(p, "spec.nodeName"), "node-") {
			t.Errorf("%s has %s on %s", name, volume, field(p, "spec.nodeName"))
		}
	}
	if len(nodes) != 3 {
		t.Errorf("they are on %v", nodes)
	}
	c.Create(claims, claim("db-3", "local"))
	c.Create(controltest.Pods, user("db-3", "db-3"))
	reported(c, "db-3", "FailedScheduling", "node(s) didn't find available persistent volumes to bind")
	clock.Advance(16 * time.Second)
	reported(c, "db-3", "WaitForPodScheduled", "waiting for pod db-3 to be scheduled")
}
