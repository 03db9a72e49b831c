package pod

import (
	"fmt"
	"net"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// volumes validates a pod's volumes and records the valid ones, which containers may mount.
func volumes(val *rule.Validation, p rule.Value) {
	scopeOf(val).volumes = map[string]object.Object{}
	podName := object.String(scopeOf(val).Meta, "name")
	made := map[string]bool{} // claims of the pod's ephemeral volumes
	for _, v := range rule.Objects(p.New) {
		if podName != "" && v["ephemeral"] != nil {
			made[podName+"-"+object.String(v, "name")] = true
		}
	}
	for i, v := range rule.Objects(p.New) {
		at, name := p.Path.Index(i), object.String(v, "name")
		before := len(val.Errs)
		val.Block("Volume", v, nil, at)
		nameWithVolume(val, v, podName, name, at)
		if name == "" {
			val.Required(at.Child("name"), "")
		} else {
			val.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
		}
		if scopeOf(val).volumes[name] != nil {
			val.Duplicate(at.Child("name"), name)
		}
		if len(val.Errs) == before {
			scopeOf(val).volumes[name] = v
		}
		if claim := object.String(object.Map(v, "persistentVolumeClaim"), "claimName"); made[claim] {
			val.Invalid(at.Child("persistentVolumeClaim", "claimName"), claim,
				"must not reference a PVC that gets created for an ephemeral volume")
		}
	}
}

// nameWithVolume validates names that include the volume's name.
func nameWithVolume(val *rule.Validation, v object.Object, podName, name string, path *field.Path) {
	if iscsi := object.Map(v, "iscsi"); iscsi["initiatorName"] != nil &&
		len(name+":"+object.String(iscsi, "targetPortal")) > 64 {
		val.Invalid(path.Child("name"), name, rule.ISCSITooLong)
	}
	if v["ephemeral"] == nil || podName == "" || name == "" {
		return
	}
	claim := podName + "-" + name
	for _, wrong := range validation.IsDNS1123Subdomain(claim) {
		val.Invalid(path.Child("name"), name, fmt.Sprintf("PVC name %q: %v", claim, wrong))
	}
}

func mounts(val *rule.Validation, p rule.Value) {
	container := p.In
	deviceNames, devicePaths := namesAndPaths(container["volumeDevices"], "devicePath")
	seen := map[string]bool{}
	for i, m := range rule.Objects(p.New) {
		at := p.Path.Index(i)
		name, mountPath := object.String(m, "name"), object.String(m, "mountPath")
		if name == "" {
			val.Required(at.Child("name"), "")
		}
		if scopeOf(val).volumes[name] == nil {
			val.Add(field.NotFound(at.Child("name"), name))
		}
		if mountPath == "" {
			val.Required(at.Child("mountPath"), "")
		}
		if seen[mountPath] {
			val.Invalid(at.Child("mountPath"), mountPath, "must be unique")
		}
		seen[mountPath] = true
		if deviceNames.Has(name) {
			val.Invalid(at.Child("name"), name, "must not already exist in volumeDevices")
		}
		if devicePaths.Has(mountPath) {
			val.Invalid(at.Child("mountPath"), mountPath, "must not already exist as a path in volumeDevices")
		}
		// The paths of these lack the index, as in Kubernetes.
		below, expr := object.String(m, "subPath"), object.String(m, "subPathExpr")
		val.Invalids(p.Path.Child("subPath"), below, rule.Relative(below))
		if expr != "" && below != "" {
			val.Invalid(at.Child("subPathExpr"), expr, "subPathExpr and subPath are mutually exclusive")
		}
		val.Invalids(p.Path.Child("subPathExpr"), expr, rule.Relative(expr))
		propagation(val, m, container, p.Path)
	}
}

func propagation(val *rule.Validation, m, container object.Object, path *field.Path) {
	mode, hasMode := m["mountPropagation"].(string)
	if hasMode && mode != "Bidirectional" && mode != "HostToContainer" && mode != "None" {
		val.Unsupported(path.Child("mountPropagation"), mode, "Bidirectional", "HostToContainer", "None")
	}
	if mode == "Bidirectional" && !object.True(object.Map(container, "securityContext"), "privileged") {
		val.Forbidden(path.Child("mountPropagation"),
			"Bidirectional mount propagation is available only to privileged containers")
	}
	switch readOnly, _ := m["recursiveReadOnly"].(string); {
	case m["recursiveReadOnly"] == nil, readOnly == "Disabled":
	case readOnly == "Enabled", readOnly == "IfPossible":
		if !object.True(m, "readOnly") {
			val.Forbidden(path.Child("recursiveReadOnly"), "may only be specified when readOnly is true")
		}
		if hasMode && mode != "None" {
			val.Forbidden(path.Child("recursiveReadOnly"),
				"may only be specified when mountPropagation is None or not specified")
		}
	default:
		val.Unsupported(path.Child("recursiveReadOnly"), readOnly, "Disabled", "Enabled", "IfPossible")
	}
}

func namesAndPaths(list any, pathField string) (names, paths sets.Set[string]) {
	names, paths = sets.Set[string]{}, sets.Set[string]{}
	for _, e := range rule.Objects(list) {
		names.Insert(object.String(e, "name"))
		paths.Insert(object.String(e, pathField))
	}
	return names, paths
}

func devices(val *rule.Validation, p rule.Value) {
	mountNames, mountPaths := namesAndPaths(p.In["volumeMounts"], "mountPath")
	names, paths := map[string]bool{}, map[string]bool{}
	for i, d := range rule.Objects(p.New) {
		at := p.Path.Index(i)
		name, devicePath := object.String(d, "name"), object.String(d, "devicePath")
		if name == "" {
			val.Required(at.Child("name"), "")
		}
		if names[name] {
			val.Invalid(at.Child("name"), name, "must be unique")
		}
		if v := scopeOf(val).volumes[name]; v == nil {
			val.Add(field.NotFound(at.Child("name"), name))
		} else if v["persistentVolumeClaim"] == nil && v["ephemeral"] == nil {
			val.Invalid(at.Child("name"), name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if devicePath == "" {
			val.Required(at.Child("devicePath"), "")
		}
		if paths[devicePath] {
			val.Invalid(at.Child("devicePath"), devicePath, "must be unique")
		}
		if len(rule.NoBacksteps(devicePath)) > 0 {
			val.Invalid(at.Child("devicePath"), devicePath, "can not contain backsteps ('..')")
		} else {
			paths[devicePath] = true
		}
		if mountNames.Has(name) {
			val.Invalid(at.Child("name"), name, "must not already exist in volumeMounts")
		}
		if mountPaths.Has(devicePath) {
			val.Invalid(at.Child("devicePath"), devicePath, "must not already exist as a path in volumeMounts")
		}
		names[name] = name != ""
	}
}

func sizeLimit(val *rule.Validation, p rule.Value) {
	if q := rule.Quantity(p.New); p.New != nil && q.Sign() < 0 {
		val.Forbidden(p.Path, "SizeLimit field must be a valid resource quantity")
	}
}

func hostPath(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	s := object.String(obj, "path")
	if s == "" {
		return
	}
	val.Invalids(p.Path.Child("path"), s, rule.NoBacksteps(s))
	kinds := []string{"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
		"Socket"}
	if kind := object.String(obj, "type"); !slices.Contains(kinds, kind) {
		val.Unsupported(p.Path.Child("type"), kind, kinds...)
	}
}

func initiatorName(val *rule.Validation, p rule.Value) {
	if s, ok := p.Object()["initiatorName"].(string); ok {
		val.Invalids(p.Path.Child("initiatorname"), s, rule.Initiator(s))
	}
}

func chapSecret(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	if (object.True(obj, "chapAuthDiscovery") || object.True(obj, "chapAuthSession")) && obj["secretRef"] == nil {
		val.Required(p.Path.Child("secretRef"), "")
	}
}

func flocker(val *rule.Validation, p rule.Value) {
	name, uuid := object.String(p.Object(), "datasetName"), object.String(p.Object(), "datasetUUID")
	switch {
	case name == "" && uuid == "":
		val.Required(p.Path, "one of datasetName and datasetUUID is required")
	case name != "" && uuid != "":
		val.Invalid(p.Path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(name, "/") {
		val.Invalid(p.Path.Child("datasetName"), name, "must not contain '/'")
	}
}

func quobyte(val *rule.Validation, p rule.Value) {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	registry := object.String(p.Object(), "registry")
	switch {
	case registry == "":
		val.Required(p.Path.Child("registry"), pairs)
	case len(object.String(p.Object(), "tenant")) >= 65:
		val.Required(p.Path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				val.Invalid(p.Path.Child("registry"), registry, pairs)
			}
		}
	}
}

// downwardItems validates files with fields of the pod. Their paths lack the index, as in Kubernetes.
func downwardItems(val *rule.Validation, p rule.Value) {
	for _, f := range rule.Objects(p.Object()["items"]) {
		downwardFile(val, f, p.Path)
	}
}

func downwardFile(val *rule.Validation, f object.Object, path *field.Path) {
	name := object.String(f, "path")
	if name == "" {
		val.Required(path.Child("path"), "")
	}
	val.Invalids(path.Child("path"), name, rule.Unreserved(name))
	ref, resource := object.Map(f, "fieldRef"), object.Map(f, "resourceFieldRef")
	switch {
	case ref != nil:
		fieldRef(val, ref, fieldsInVolumes, path.Child("fieldRef"))
		if resource != nil {
			val.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case resource != nil:
		resourceRef(val, resource, true, path.Child("resourceFieldRef"))
	default:
		val.Required(path, "one of fieldRef and resourceFieldRef is required")
	}
	rule.FileMode(val, rule.Value{New: f["mode"], Path: path.Child("mode")})
}

func fibre(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	names, ids := rule.Strings(obj["targetWWNs"]), rule.Strings(obj["wwids"])
	path := p.Path.Child("targetWWNs")
	switch {
	case len(names) == 0 && len(ids) == 0:
		val.Required(path, "must specify either targetWWNs or wwids, but not both")
	case len(names) > 0 && len(ids) > 0:
		val.Invalid(path, names, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(names) == 0 {
		return
	}
	lun, ok := object.Int(obj, "lun")
	if !ok {
		val.Required(p.Path.Child("lun"), "lun is required if targetWWNs is specified")
	} else if lun < 0 || lun > 255 {
		val.Invalid(p.Path.Child("lun"), lun, validation.InclusiveRangeError(0, 255))
	}
}

func flexOptions(val *rule.Validation, p rule.Value) {
	options := object.Map(p.Object(), "options")
	for _, key := range object.Keys(options) {
		namespace, _, _ := strings.Cut(key, "/")
		namespace = "." + strings.ToLower(namespace)
		if strings.HasSuffix(namespace, ".kubernetes.io") || strings.HasSuffix(namespace, ".k8s.io") {
			val.Invalid(p.Path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func diskURI(val *rule.Validation, p rule.Value) {
	kind, ok := p.Object()["kind"].(string)
	uri := object.String(p.Object(), "diskURI")
	switch {
	case ok && kind == "Managed" && !strings.HasPrefix(uri, "/subscriptions/"):
		val.Unsupported(p.Path.Child("diskURI"), uri,
			"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}")
	case ok && kind != "Managed" && !strings.HasPrefix(uri, "https://"):
		val.Unsupported(p.Path.Child("diskURI"), uri,
			"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
	}
}

func publishSecret(val *rule.Validation, p rule.Value) {
	ref := object.Map(p.Object(), "nodePublishSecretRef")
	if ref == nil {
		return
	}
	name := object.String(ref, "name")
	if name == "" {
		val.Required(p.Path.Child("nodePublishSecretRef", "name"), "")
		return
	}
	val.Invalids(p.Path.Child("name"), name, validation.IsDNS1123Subdomain(name))
}

// TemplateMeta allows only labels and annotations in a claim template's metadata.
func TemplateMeta(val *rule.Validation, p rule.Value) {
	meta := p.Object()
	val.Errs = append(val.Errs,
		apivalidation.ValidateAnnotations(rule.StringMap(meta["annotations"]), p.Path.Child("annotations"))...)
	val.Errs = append(val.Errs, unversioned.ValidateLabels(rule.StringMap(meta["labels"]), p.Path.Child("labels"))...)
	for _, name := range object.Keys(meta) {
		if name != "annotations" && name != "labels" && !rule.IsEmpty(meta[name]) {
			val.Forbidden(p.Path.Child(name), "cannot be set")
		}
	}
}

func imageReference(val *rule.Validation, p rule.Value) {
	if scopeOf(val) != nil && scopeOf(val).isPod() && object.String(p.Object(), "reference") == "" {
		val.Required(p.Path.Child("reference"), "")
	}
}

// volumeFunctions are the functions that volume.txt names.
func volumeFunctions() rule.Functions {
	return rule.Functions{
		"chapSecret":     chapSecret,
		"diskURI":        diskURI,
		"downwardItems":  downwardItems,
		"fibre":          fibre,
		"flexOptions":    flexOptions,
		"flocker":        flocker,
		"hostPath":       hostPath,
		"imageReference": imageReference,
		"initiatorName":  initiatorName,
		"mode":           rule.FileMode,
		"projected":      projected,
		"publishSecret":  publishSecret,
		"quobyte":        quobyte,
		"sizeLimit":      sizeLimit,
	}
}
