package oraclebuiltins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/scheduling/podgroupprotection"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// suffix is the random end of the names that plugins make.
var suffix = regexp.MustCompile(`(kube-api-access-)[a-z0-9]{5}\b`)

// pluginCases matches the files with requests to plugins.
const pluginCases = "../../internal/feature/plugins/*/testdata/*.yaml"

func callsProcess(all *plugintest.Cases) bool {
	return slices.Contains(all.Gates, string(features.GenericWorkload))
}

func pluginRegistry() *admission.Plugins {
	registry := admission.NewPlugins()
	for _, register := range []func(*admission.Plugins){
		priority.Register, defaulttolerationseconds.Register, nodetaint.Register, setdefault.Register,
		defaultingressclass.Register, resize.Register,
		runtimeclass.Register, limitranger.Register, serviceaccount.Register,
		storageobjectinuseprotection.Register, podsecurity.Register, approval.Register, signing.Register,
		ctbattest.Register,
		subjectrestriction.Register, noderestriction.Register,
		nodedeclaredfeatures.Register, podresize.Register, podtopologylabels.Register,
		podgroupprotection.Register,
	} {
		register(registry)
	}
	return registry
}

// callPlugin compares one of Kubernetes' plugins with a case.
func callPlugin(
	t *testing.T, registry *admission.Plugins, name string, all *plugintest.Cases, c *plugintest.Write,
) {
	t.Helper()
	p := startPlugin(t, registry, name, all.Configuration, slices.Concat(all.Stored, c.Stored))
	var obj, old runtime.Object
	var gvk schema.GroupVersionKind
	if len(c.Old) > 0 {
		old, gvk = hub(t, c.Old)
	}
	if len(c.Object) > 0 {
		obj, gvk = hub(t, c.Object)
	}
	warnings := &warningRecorder{}
	ctx := audit.WithAuditContext(warning.WithWarningRecorder(t.Context(), warnings))
	err := admitWith(ctx, t, p, obj, old, gvk, c.Subresource,
		cmp.Or(admission.Operation(c.Operation), admission.Create),
		&user.DefaultInfo{Name: cmp.Or(c.User, "me"), Groups: c.Groups})
	refused := ""
	if err != nil {
		refused = err.Error()
	}
	if causes := causesOf(err); refused != c.Refused || !slices.Equal(causes, c.Causes) {
		t.Errorf("refused: %s %q\nfile says: %s %q", refused, causes, c.Refused, c.Causes)
	}
	notes := map[string]string{}
	for key, value := range audit.AuditContextFrom(ctx).GetEventAnnotations() {
		notes[strings.TrimPrefix(key, "pod-security.kubernetes.io/")] = value
	}
	if !slices.Equal(warnings.warnings, c.Warnings) || !maps.Equal(notes, c.Notes) {
		t.Errorf("warnings %q, notes %q\nfile says %q, %q", warnings.warnings, notes, c.Warnings, c.Notes)
	}
	if err != nil || obj == nil {
		return
	}
	want, _ := hub(t, mergePatch(t, c.Object, c.Want))
	got := suffix.ReplaceAllString(string(marshal(t, spoke(t, obj, gvk))), "${1}abcde")
	if d := difference("", tree(t, []byte(got)), tree(t, marshal(t, spoke(t, want, gvk)))); len(d) > 0 {
		t.Errorf("the object differs from what the file says:\n%s", strings.Join(d, "\n"))
	}
}

// causesOf returns the types of the causes that a refusal names.
func causesOf(err error) (types []metav1.CauseType) {
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			types = append(types, cause.Type)
		}
	}
	return types
}

// warningRecorder are the warnings for a client.
type warningRecorder struct{ warnings []string }

// AddWarning notes a warning.
func (h *warningRecorder) AddWarning(_, text string) { h.warnings = append(h.warnings, text) }

// startPlugin returns one of Kubernetes' plugins, which finds the stored objects.
func startPlugin(
	t *testing.T, registry *admission.Plugins, name string, configuration json.RawMessage, stored []json.RawMessage,
) admission.Interface {
	t.Helper()
	var objects []runtime.Object
	for _, data := range stored {
		objects = append(objects, typed(t, data))
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	var config io.Reader
	if configuration != nil {
		config = bytes.NewReader(configuration)
	}
	p, err := registry.InitPlugin(name, config,
		initializer.New(client, nil, factory, authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup),
			utilfeature.DefaultFeatureGate, compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if gated, ok := p.(initializer.WantsFeatures); ok { // some plugins do less without gates that are off
		gated.InspectFeatureGates(opened{utilfeature.DefaultFeatureGate})
		if reads, ok := p.(initializer.WantsExternalKubeInformerFactory); ok {
			reads.SetExternalKubeInformerFactory(factory)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return p
}

// opened are feature gates with the gates of certificates and of groups of pods on.
type opened struct{ featuregate.FeatureGate }

func (g opened) Enabled(name featuregate.Feature) bool {
	switch name {
	case features.ClusterTrustBundle, features.PodCertificateRequest, features.GenericWorkload:
		return true
	}
	return g.FeatureGate.Enabled(name)
}

// admitWith sends a write through both halves of a plugin.
func admitWith(
	ctx context.Context, t *testing.T, p admission.Interface, obj, old runtime.Object, gvk schema.GroupVersionKind,
	subresource string, op admission.Operation, u user.Info,
) error {
	t.Helper()
	named := obj
	if obj == nil { // a deletion
		named = old
	}
	m, err := meta.Accessor(named)
	if err != nil {
		t.Fatal(err)
	}
	namespace := m.GetNamespace()
	if gvk.Kind == "Namespace" { // as a server sets it
		namespace = m.GetName()
	}
	a := admission.NewAttributesRecord(obj, old, gvk, namespace, m.GetName(), resourceOf(t, gvk), subresource, op, nil,
		false, u)
	if !p.Handles(op) {
		return nil
	}
	if mutator, ok := p.(admission.MutationInterface); ok {
		if err := mutator.Admit(ctx, a, nil); err != nil {
			return err
		}
	}
	if validator, ok := p.(admission.ValidationInterface); ok {
		return validator.Validate(ctx, a, nil)
	}
	return nil
}

func resourceOf(t *testing.T, gvk schema.GroupVersionKind) schema.GroupVersionResource {
	t.Helper()
	switch gvk.Kind { // writes through a subresource
	case "Binding", "Eviction":
		return corev1.SchemeGroupVersion.WithResource("pods")
	case "TokenRequest":
		return corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	}
	for _, r := range kinds.Resources() {
		if r.Kind == gvk.Kind && r.Group == gvk.Group {
			return gvk.GroupVersion().WithResource(r.Plural)
		}
	}
	t.Fatalf("there is no kind %s", gvk)
	return schema.GroupVersionResource{}
}

// typed reads an object into its Go type.
func typed(t *testing.T, data []byte) runtime.Object {
	t.Helper()
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// hub reads an object into Kubernetes' internal type, without defaults.
func hub(t *testing.T, data []byte) (runtime.Object, schema.GroupVersionKind) {
	t.Helper()
	obj := typed(t, data)
	gvk := obj.GetObjectKind().GroupVersionKind()
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(obj,
		schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		t.Fatal(err)
	}
	return out, gvk
}

func spoke(t *testing.T, obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(obj, gvk.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mergePatch(t *testing.T, obj, patch []byte) []byte {
	t.Helper()
	if len(patch) == 0 {
		return obj
	}
	out, err := jsonpatch.MergePatch(obj, patch)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
