package check

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func volumeFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"volumes":        volumes,
		"mounts":         mounts,
		"devices":        devices,
		"sizeLimit":      sizeLimit,
		"hostPath":       hostPath,
		"chapSecret":     chapSecret,
		"initiatorName":  initiatorName,
		"flocker":        flocker,
		"quobyte":        quobyte,
		"downwardItems":  downwardItems,
		"fibre":          fibre,
		"flexOptions":    flexOptions,
		"diskURI":        diskURI,
		"projected":      projected,
		"publishSecret":  publishSecret,
		"templateMeta":   templateMeta,
		"imageReference": imageReference,
		"valueFrom":      valueFrom,
		"envFrom":        envFrom,
	}
}

// volumes judges a pod's volumes and remembers the valid ones, which containers may mount.
func volumes(j *judgement, p place) {
	scopeOf(j).volumes = map[string]object{}
	podName := text1(scopeOf(j).meta, "name")
	made := map[string]bool{} // claims that the pod's ephemeral volumes become
	for _, v := range objects(p.value) {
		if podName != "" && v["ephemeral"] != nil {
			made[podName+"-"+text1(v, "name")] = true
		}
	}
	for i, v := range objects(p.value) {
		at, name := p.path.Index(i), text1(v, "name")
		before := len(j.errs)
		j.block("Volume", v, nil, at)
		j.nameWithVolume(v, podName, name, at)
		if name == "" {
			j.required(at.Child("name"), "")
		} else {
			j.invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
		}
		if scopeOf(j).volumes[name] != nil {
			j.duplicate(at.Child("name"), name)
		}
		if len(j.errs) == before {
			scopeOf(j).volumes[name] = v
		}
		if claim := text1(inner(v, "persistentVolumeClaim"), "claimName"); made[claim] {
			j.invalid(at.Child("persistentVolumeClaim", "claimName"), claim,
				"must not reference a PVC that gets created for an ephemeral volume")
		}
	}
}

const iscsiTooLong = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."

// nameWithVolume judges names that are made of the volume's name and others.
func (j *judgement) nameWithVolume(v object, podName, name string, path *field.Path) {
	if iscsi := inner(v, "iscsi"); iscsi["initiatorName"] != nil && len(name+":"+text1(iscsi, "targetPortal")) > 64 {
		j.invalid(path.Child("name"), name, iscsiTooLong)
	}
	if v["ephemeral"] == nil || podName == "" || name == "" {
		return
	}
	claim := podName + "-" + name
	for _, wrong := range validation.IsDNS1123Subdomain(claim) {
		j.invalid(path.Child("name"), name, fmt.Sprintf("PVC name %q: %v", claim, wrong))
	}
}

func mounts(j *judgement, p place) {
	container := p.in
	deviceNames, devicePaths := namesAndPaths(container["volumeDevices"], "devicePath")
	seen := map[string]bool{}
	for i, m := range objects(p.value) {
		at := p.path.Index(i)
		name, mountPath := text1(m, "name"), text1(m, "mountPath")
		if name == "" {
			j.required(at.Child("name"), "")
		}
		if scopeOf(j).volumes[name] == nil {
			j.add(field.NotFound(at.Child("name"), name))
		}
		if mountPath == "" {
			j.required(at.Child("mountPath"), "")
		}
		if seen[mountPath] {
			j.invalid(at.Child("mountPath"), mountPath, "must be unique")
		}
		seen[mountPath] = true
		if slices.Contains(deviceNames, name) {
			j.invalid(at.Child("name"), name, "must not already exist in volumeDevices")
		}
		if slices.Contains(devicePaths, mountPath) {
			j.invalid(at.Child("mountPath"), mountPath, "must not already exist as a path in volumeDevices")
		}
		// The paths of these lack the index, as in Kubernetes.
		below, expr := text1(m, "subPath"), text1(m, "subPathExpr")
		j.invalids(p.path.Child("subPath"), below, relative(below))
		if expr != "" && below != "" {
			j.invalid(at.Child("subPathExpr"), expr, "subPathExpr and subPath are mutually exclusive")
		}
		j.invalids(p.path.Child("subPathExpr"), expr, relative(expr))
		j.propagation(m, container, p.path)
	}
}

func (j *judgement) propagation(m, container object, path *field.Path) {
	mode, hasMode := m["mountPropagation"].(string)
	if hasMode && mode != "Bidirectional" && mode != "HostToContainer" && mode != "None" {
		j.unsupported(path.Child("mountPropagation"), mode, "Bidirectional", "HostToContainer", "None")
	}
	if mode == "Bidirectional" && !truth(inner(container, "securityContext"), "privileged") {
		j.forbidden(path.Child("mountPropagation"),
			"Bidirectional mount propagation is available only to privileged containers")
	}
	switch readOnly, _ := m["recursiveReadOnly"].(string); {
	case m["recursiveReadOnly"] == nil, readOnly == "Disabled":
	case readOnly == "Enabled", readOnly == "IfPossible":
		if !truth(m, "readOnly") {
			j.forbidden(path.Child("recursiveReadOnly"), "may only be specified when readOnly is true")
		}
		if hasMode && mode != "None" {
			j.forbidden(path.Child("recursiveReadOnly"),
				"may only be specified when mountPropagation is None or not specified")
		}
	default:
		j.unsupported(path.Child("recursiveReadOnly"), readOnly, "Disabled", "Enabled", "IfPossible")
	}
}

func namesAndPaths(list any, pathField string) (names, paths []string) {
	for _, e := range objects(list) {
		names, paths = append(names, text1(e, "name")), append(paths, text1(e, pathField))
	}
	return names, paths
}

func devices(j *judgement, p place) {
	mountNames, mountPaths := namesAndPaths(p.in["volumeMounts"], "mountPath")
	names, paths := map[string]bool{}, map[string]bool{}
	for i, d := range objects(p.value) {
		at := p.path.Index(i)
		name, devicePath := text1(d, "name"), text1(d, "devicePath")
		if name == "" {
			j.required(at.Child("name"), "")
		}
		if names[name] {
			j.invalid(at.Child("name"), name, "must be unique")
		}
		if v := scopeOf(j).volumes[name]; v == nil {
			j.add(field.NotFound(at.Child("name"), name))
		} else if v["persistentVolumeClaim"] == nil && v["ephemeral"] == nil {
			j.invalid(at.Child("name"), name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if devicePath == "" {
			j.required(at.Child("devicePath"), "")
		}
		if paths[devicePath] {
			j.invalid(at.Child("devicePath"), devicePath, "must be unique")
		}
		if len(noBacksteps(devicePath)) > 0 {
			j.invalid(at.Child("devicePath"), devicePath, "can not contain backsteps ('..')")
		} else {
			paths[devicePath] = true
		}
		if slices.Contains(mountNames, name) {
			j.invalid(at.Child("name"), name, "must not already exist in volumeMounts")
		}
		if slices.Contains(mountPaths, devicePath) {
			j.invalid(at.Child("devicePath"), devicePath, "must not already exist as a path in volumeMounts")
		}
		names[name] = name != ""
	}
}

func sizeLimit(j *judgement, p place) {
	if q := quantity(p.value); p.value != nil && q.Sign() < 0 {
		j.forbidden(p.path, "SizeLimit field must be a valid resource quantity")
	}
}

func hostPath(j *judgement, p place) {
	obj := p.object()
	s := text1(obj, "path")
	if s == "" {
		return
	}
	j.invalids(p.path.Child("path"), s, noBacksteps(s))
	kinds := []string{"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
		"Socket"}
	if kind := text1(obj, "type"); !slices.Contains(kinds, kind) {
		j.unsupported(p.path.Child("type"), kind, kinds...)
	}
}

var initiatorForms = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

// initiator judges the name of a party of iSCSI.
func initiator(s string) []string {
	form := initiatorForms[s[:min(3, len(s))]]
	switch {
	case form == nil:
		return []string{"must be valid format starting with iqn, eui, or naa"}
	case !form.MatchString(s):
		return []string{"must be valid format"}
	}
	return nil
}

func initiatorName(j *judgement, p place) {
	if s, ok := p.object()["initiatorName"].(string); ok {
		j.invalids(p.path.Child("initiatorname"), s, initiator(s))
	}
}

func chapSecret(j *judgement, p place) {
	obj := p.object()
	if (truth(obj, "chapAuthDiscovery") || truth(obj, "chapAuthSession")) && obj["secretRef"] == nil {
		j.required(p.path.Child("secretRef"), "")
	}
}

func flocker(j *judgement, p place) {
	name, uuid := text1(p.object(), "datasetName"), text1(p.object(), "datasetUUID")
	switch {
	case name == "" && uuid == "":
		j.required(p.path, "one of datasetName and datasetUUID is required")
	case name != "" && uuid != "":
		j.invalid(p.path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(name, "/") {
		j.invalid(p.path.Child("datasetName"), name, "must not contain '/'")
	}
}

func quobyte(j *judgement, p place) {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	registry := text1(p.object(), "registry")
	switch {
	case registry == "":
		j.required(p.path.Child("registry"), pairs)
	case len(text1(p.object(), "tenant")) >= 65:
		j.required(p.path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				j.invalid(p.path.Child("registry"), registry, pairs)
			}
		}
	}
}

// downwardItems judges files with fields of the pod. Their paths lack the index, as in Kubernetes.
func downwardItems(j *judgement, p place) {
	for _, f := range objects(p.object()["items"]) {
		j.downwardFile(f, p.path)
	}
}

func (j *judgement) downwardFile(f object, path *field.Path) {
	name := text1(f, "path")
	if name == "" {
		j.required(path.Child("path"), "")
	}
	j.invalids(path.Child("path"), name, unreserved(name))
	ref, resource := inner(f, "fieldRef"), inner(f, "resourceFieldRef")
	switch {
	case ref != nil:
		j.fieldRef(ref, fieldsInVolumes, path.Child("fieldRef"))
		if resource != nil {
			j.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case resource != nil:
		j.resourceRef(resource, true, path.Child("resourceFieldRef"))
	default:
		j.required(path, "one of fieldRef and resourceFieldRef is required")
	}
	fileMode(j, place{value: f["mode"], path: path.Child("mode")})
}

func fibre(j *judgement, p place) {
	obj := p.object()
	names, ids := texts(obj["targetWWNs"]), texts(obj["wwids"])
	path := p.path.Child("targetWWNs")
	switch {
	case len(names) == 0 && len(ids) == 0:
		j.required(path, "must specify either targetWWNs or wwids, but not both")
	case len(names) > 0 && len(ids) > 0:
		j.invalid(path, names, "targetWWNs and wwids can not be specified simultaneously")
	}
	if len(names) == 0 {
		return
	}
	lun, ok := number(obj, "lun")
	if !ok {
		j.required(p.path.Child("lun"), "lun is required if targetWWNs is specified")
	} else if lun < 0 || lun > 255 {
		j.invalid(p.path.Child("lun"), lun, validation.InclusiveRangeError(0, 255))
	}
}

func flexOptions(j *judgement, p place) {
	options := inner(p.object(), "options")
	for _, key := range keys(options) {
		namespace, _, _ := strings.Cut(key, "/")
		namespace = "." + strings.ToLower(namespace)
		if strings.HasSuffix(namespace, ".kubernetes.io") || strings.HasSuffix(namespace, ".k8s.io") {
			j.invalid(p.path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func diskURI(j *judgement, p place) {
	kind, ok := p.object()["kind"].(string)
	uri := text1(p.object(), "diskURI")
	switch {
	case ok && kind == "Managed" && !strings.HasPrefix(uri, "/subscriptions/"):
		j.unsupported(p.path.Child("diskURI"), uri,
			"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}")
	case ok && kind != "Managed" && !strings.HasPrefix(uri, "https://"):
		j.unsupported(p.path.Child("diskURI"), uri,
			"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
	}
}

func publishSecret(j *judgement, p place) {
	ref := inner(p.object(), "nodePublishSecretRef")
	if ref == nil {
		return
	}
	name := text1(ref, "name")
	if name == "" {
		j.required(p.path.Child("nodePublishSecretRef", "name"), "")
		return
	}
	j.invalids(p.path.Child("name"), name, validation.IsDNS1123Subdomain(name))
}

// templateMeta lets a claim's template have labels and annotations, and nothing else.
func templateMeta(j *judgement, p place) {
	meta := p.object()
	j.errs = append(j.errs,
		apivalidation.ValidateAnnotations(pairs(meta["annotations"]), p.path.Child("annotations"))...)
	j.errs = append(j.errs, unversioned.ValidateLabels(pairs(meta["labels"]), p.path.Child("labels"))...)
	for _, name := range keys(meta) {
		if name != "annotations" && name != "labels" && !empty(meta[name]) {
			j.forbidden(p.path.Child(name), "cannot be set")
		}
	}
}

func imageReference(j *judgement, p place) {
	if scopeOf(j) != nil && scopeOf(j).isPod() && text1(p.object(), "reference") == "" {
		j.required(p.path.Child("reference"), "")
	}
}
