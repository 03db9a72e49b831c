package pod

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var updateFields = flag.Bool("update", false, "rewrite the list of ignored fields in docs/workloads.md")

// readFields are the fields of a pod's spec with an effect: on simulated kubelets, the scheduler, controllers or
// admission. A field covers the fields in it. Fields of initContainers and ephemeralContainers stand as fields of
// containers.
var readFields = strings.Fields(`
	activeDeadlineSeconds affinity automountServiceAccountToken hostNetwork hostname imagePullSecrets nodeName
	nodeSelector overhead preemptionPolicy priority priorityClassName readinessGates resources restartPolicy
	runtimeClassName schedulerName schedulingGates serviceAccount serviceAccountName subdomain
	terminationGracePeriodSeconds tolerations topologySpreadConstraints

	containers.name containers.image containers.ports containers.resizePolicy containers.restartPolicy
	containers.restartPolicyRules containers.resources.requests containers.resources.limits
	containers.envFrom.configMapRef containers.envFrom.secretRef containers.env.value
	containers.env.valueFrom.configMapKeyRef containers.env.valueFrom.secretKeyRef containers.volumeMounts.name
	containers.volumeMounts.mountPath containers.volumeMounts.readOnly containers.volumeMounts.recursiveReadOnly

	volumes.name volumes.persistentVolumeClaim.claimName volumes.ephemeral
	volumes.configMap.name volumes.configMap.items.key volumes.configMap.optional
	volumes.secret.secretName volumes.secret.items.key volumes.secret.optional
	volumes.projected.sources.configMap.name volumes.projected.sources.configMap.items.key
	volumes.projected.sources.configMap.optional volumes.projected.sources.secret.name
	volumes.projected.sources.secret.items.key volumes.projected.sources.secret.optional
`)

// ignoredFields are the fields of a pod's spec that the simulation stores and ignores.
var ignoredFields = strings.Fields(`
	dnsConfig dnsPolicy enableServiceLinks evictionResponders hostAliases hostIPC hostPID hostUsers hostnameOverride os
	resourceClaims schedulingGroup securityContext setHostnameAsFQDN shareProcessNamespace

	containers.args containers.command containers.env.name containers.env.valueFrom.fieldRef
	containers.env.valueFrom.fileKeyRef containers.env.valueFrom.resourceFieldRef containers.envFrom.prefix
	containers.imagePullPolicy containers.lifecycle containers.livenessProbe containers.readinessProbe
	containers.resources.claims containers.securityContext containers.startupProbe containers.stdin
	containers.stdinOnce containers.targetContainerName containers.terminationMessagePath
	containers.terminationMessagePolicy containers.tty containers.volumeDevices
	containers.volumeMounts.bindMountOptions containers.volumeMounts.mountPropagation
	containers.volumeMounts.subPath containers.volumeMounts.subPathExpr containers.workingDir

	volumes.awsElasticBlockStore volumes.azureDisk volumes.azureFile volumes.cephfs volumes.cinder
	volumes.configMap.defaultMode volumes.configMap.defaultUser volumes.configMap.items.mode
	volumes.configMap.items.path volumes.configMap.items.user volumes.csi
	volumes.downwardAPI volumes.emptyDir volumes.fc volumes.flexVolume volumes.flocker volumes.gcePersistentDisk
	volumes.gitRepo volumes.glusterfs volumes.hostPath volumes.image volumes.iscsi volumes.nfs
	volumes.persistentVolumeClaim.readOnly volumes.photonPersistentDisk volumes.portworxVolume
	volumes.projected.defaultMode volumes.projected.defaultUser volumes.projected.sources.clusterTrustBundle
	volumes.projected.sources.configMap.items.mode volumes.projected.sources.configMap.items.path
	volumes.projected.sources.configMap.items.user volumes.projected.sources.downwardAPI volumes.projected.sources.podCertificate
	volumes.projected.sources.secret.items.mode volumes.projected.sources.secret.items.path
	volumes.projected.sources.secret.items.user volumes.projected.sources.serviceAccountToken volumes.quobyte volumes.rbd volumes.scaleIO
	volumes.secret.defaultMode volumes.secret.defaultUser volumes.secret.items.mode volumes.secret.items.path
	volumes.secret.items.user volumes.storageos volumes.vsphereVolume
`)

// TestFields checks that each field of a pod's spec is either read or ignored, and that docs/workloads.md lists the
// ignored ones.
func TestFields(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	walk(reflect.TypeFor[corev1.PodSpec](), "", func(path string) bool {
		read, ignored := slices.Contains(readFields, path), slices.Contains(ignoredFields, path)
		if read && ignored {
			t.Errorf("%s is read and ignored", path)
		}
		used[path] = true
		return read || ignored
	}, func(path string) { t.Errorf("spec.%s: add it to readFields or ignoredFields", path) })
	for _, path := range slices.Concat(readFields, ignoredFields) {
		if !used[path] {
			t.Errorf("%s is no field of a pod's spec, or a field around it is in the lists", path)
		}
	}
	page := filepath.Join("..", "..", "..", "docs", "workloads.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- ignored fields -->\n", "<!-- end of ignored fields -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no list of ignored fields", page)
	}
	switch list := ignoredList(); {
	case old == list:
	case *updateFields:
		if err := os.WriteFile(page, []byte(before+begin+list+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s lists other fields; run: go test ./internal/workload/pod -run TestFields -update", page)
	}
}

// walk calls known with the path of each field of a struct, and walks into unknown structs. It calls missing with
// unknown fields that are no structs.
func walk(of reflect.Type, path string, known func(string) bool, missing func(string)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[corev1.Pod]().PkgPath() {
		missing(path)
		return
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case name == "": // inlined
			walk(f.Type, path, known, missing)
			continue
		case at == "initContainers", at == "ephemeralContainers":
			at = "containers"
		}
		if !known(at) {
			walk(f.Type, at, known, missing)
		}
	}
}

// ignoredList is the list of ignored fields in Markdown.
func ignoredList() string {
	var b strings.Builder
	for _, part := range []struct{ prefix, title string }{
		{"", "`spec`"}, {"containers.", "`containers`, `initContainers` and `ephemeralContainers`"},
		{"volumes.", "`volumes`"},
	} {
		var names []string
		for _, path := range ignoredFields {
			name, ok := strings.CutPrefix(path, part.prefix)
			inPart := strings.HasPrefix(path, "containers.") || strings.HasPrefix(path, "volumes.")
			if ok && inPart == (part.prefix != "") {
				names = append(names, "`"+name+"`")
			}
		}
		line := "- " + part.title + ":"
		for i, name := range names {
			if i < len(names)-1 {
				name += ","
			}
			if len(line)+1+len(name) > 119 {
				b.WriteString(line + "\n")
				line = " "
			}
			line += " " + name
		}
		b.WriteString(line + ".\n")
	}
	return b.String()
}
