package check

import (
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// oldNodeLabels are labels of nodes that should no longer be asked for, and what to say then. It is never changed.
var oldNodeLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  `deprecated since v1.9`,
	"scheduler.alpha.kubernetes.io/preferAvoidPods": `deprecated since v1.22; use Taints and Tolerations instead`,
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// oldVolumes are sources of volumes that no node mounts any more, in the order in which Kubernetes speaks of them.
var oldVolumes = [][2]string{
	{"photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
	{"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
	{"scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
	{"flocker", "deprecated in v1.22, non-functional in v1.25+"},
	{"storageos", "deprecated in v1.22, non-functional in v1.25+"},
	{"quobyte", "deprecated in v1.22, non-functional in v1.25+"},
	{"glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
	{"cephfs", "deprecated in v1.28, non-functional in v1.31+"},
	{"rbd", "deprecated in v1.28, non-functional in v1.31+"},
}

// nodeTerm is about one term of a node selector. Where nobody checks the values of its expressions, they are looked at
// here.
func (a *advice) nodeTerm(term object, path *field.Path, values bool) {
	for i, e := range objects(term["matchExpressions"]) {
		at := path.Child("matchExpressions").Index(i)
		key := text1(e, "key")
		if text := oldNodeLabels[key]; text != "" {
			a.say(at.Child("key"), "%s is %s", key, text)
		}
		if !values {
			continue
		}
		for k, value := range texts(e["values"]) {
			for _, problem := range validation.IsValidLabelValue(value) {
				a.say(at.Child("values").Index(k), "%s is invalid, %s", value, problem)
			}
		}
	}
}

func (a *advice) node() {
	spec := inner(a.obj, "spec")
	if spec["configSource"] != nil {
		a.say(field.NewPath("spec", "configSource"), "the feature is removed")
	}
	if text1(spec, "externalID") != "" {
		a.say(field.NewPath("spec", "externalID"), "this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range texts(spec["podCIDRs"]) {
		a.cidr(field.NewPath("spec", "podCIDRs").Index(i), cidr)
	}
}

func (a *advice) runtimeClass() {
	for _, key := range keys(inner(a.obj, "scheduling", "nodeSelector")) {
		if text := oldNodeLabels[key]; text != "" {
			a.say(field.NewPath("scheduling", "nodeSelector"), "%s", text)
		}
	}
}

func (a *advice) volume() {
	spec, path := inner(a.obj, "spec"), field.NewPath("spec")
	annotations := a.annotations()
	for _, old := range [][2]string{
		{"volume.beta.kubernetes.io/storage-class", `deprecated since v1.8; use "storageClassName" attribute instead`},
		{"volume.beta.kubernetes.io/mount-options", `deprecated since v1.31; use "mountOptions" attribute instead`},
	} {
		if _, ok := annotations[old[0]]; ok {
			a.say(field.NewPath("metadata", "annotations").Key(old[0]), "%s", old[1])
		}
	}
	if text1(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
		a.say(path.Child("persistentVolumeReclaimPolicy"),
			"The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	for i, term := range objects(inner(spec, "nodeAffinity", "required")["nodeSelectorTerms"]) {
		a.nodeTerm(term, path.Child("nodeAffinity", "required", "nodeSelectorTerms").Index(i), false)
	}
	for _, name := range []string{"cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"} {
		if spec[name] != nil {
			a.say(path.Child(goName(name)), "%s", oldVolume(name))
		}
	}
}

func oldVolume(name string) string {
	for _, v := range oldVolumes {
		if v[0] == name {
			return v[1]
		}
	}
	return ""
}

// goName is what Kubernetes calls a source of a volume in its warnings.
func goName(name string) string {
	if name == "storageos" {
		return "storageOS"
	}
	return name
}

func (a *advice) claim() {
	const class = "volume.beta.kubernetes.io/storage-class"
	if _, ok := a.annotations()[class]; ok {
		a.say(field.NewPath("metadata", "annotations").Key(class),
			`deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	a.claimSpec(inner(a.obj, "spec"), field.NewPath("spec"))
}

func (a *advice) claimSpec(spec object, path *field.Path) {
	for _, kind := range []string{"requests", "limits"} {
		a.wholeBytes(inner(spec, "resources", kind), path.Child("resources", kind), "storage")
	}
}

func (a *advice) storageClass() {
	for i, topology := range objects(a.obj["allowedTopologies"]) {
		for k, e := range objects(topology["matchLabelExpressions"]) {
			if text := oldNodeLabels[text1(e, "key")]; text != "" {
				a.say(field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(k).Child("key"),
					"%s", text)
			}
		}
	}
}

func (a *advice) storageCapacity() {
	topology, path := inner(a.obj, "nodeTopology"), field.NewPath("nodeTopology")
	a.nodeTerm(topology, path, false)
	for _, key := range keys(inner(topology, "matchLabels")) {
		if text := oldNodeLabels[key]; text != "" {
			a.say(path.Child("matchLabels", key), "%s", text)
		}
	}
}

func (a *advice) csiDriver() {
	spec := inner(a.obj, "spec")
	if len(objects(spec["tokenRequests"])) == 0 || spec["serviceAccountTokenInSecrets"] != nil {
		return
	}
	if a.old == nil || !same(inner(a.old, "spec")["tokenRequests"], spec["tokenRequests"]) {
		a.plainly(
			"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes")
	}
}
