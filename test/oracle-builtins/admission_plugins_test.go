package oraclebuiltins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
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
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
	"k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/plugin"
)

// admissionCases is what a file of ../../internal/kinds/plugin/testdata says; see TestPlugins there.
type admissionCases struct {
	Configuration json.RawMessage
	Stored        []json.RawMessage
	Cases         []struct {
		Name, Subresource string
		User              string
		Stored            []json.RawMessage
		Operation         admission.Operation
		Object, Old, Want json.RawMessage
		Groups            []string
		Refused           string
		Causes            []metav1.CauseType
		Warnings          []string
		Notes             map[string]string
	}
}

// suffix is the random end of the names that plugins make.
var suffix = regexp.MustCompile(`(kube-api-access-)[a-z0-9]{5}\b`)

// TestAdmissionPlugins asks Kubernetes' plugins what testdata asks ours: they must say and do what the files say.
func TestAdmissionPlugins(t *testing.T) {
	t.Parallel()
	registry := admission.NewPlugins()
	for _, register := range []func(*admission.Plugins){
		priority.Register, defaulttolerationseconds.Register, nodetaint.Register, setdefault.Register,
		defaultingressclass.Register, resize.Register,
		runtimeclass.Register, limitranger.Register, serviceaccount.Register,
		storageobjectinuseprotection.Register, podsecurity.Register, approval.Register, signing.Register,
		subjectrestriction.Register,
		nodedeclaredfeatures.Register, podresize.Register, podtopologylabels.Register,
	} {
		register(registry)
	}
	if ours := slices.Sorted(slices.Values(plugin.Names())); !slices.Equal(ours, registry.Registered()) {
		t.Fatalf("compared are %q, there are %q", registry.Registered(), ours)
	}
	files, err := filepath.Glob("../../internal/kinds/plugin/testdata/*.yaml")
	if err != nil || len(files) < len(registry.Registered()) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "-")
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var all admissionCases
			if err := yaml.UnmarshalStrict(data, &all); err != nil {
				t.Fatal(err)
			}
			for _, c := range all.Cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					p := startPlugin(t, registry, name, all.Configuration, slices.Concat(all.Stored, c.Stored))
					op := c.Operation
					if op == "" {
						op = admission.Create
					}
					obj, gvk := hub(t, c.Object)
					var old runtime.Object
					if len(c.Old) > 0 {
						old, _ = hub(t, c.Old)
					}
					said := &heard{}
					ctx := audit.WithAuditContext(warning.WithWarningRecorder(t.Context(), said))
					err := admitWith(ctx, t, p, obj, old, gvk, c.Subresource, op,
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
					if !slices.Equal(said.warnings, c.Warnings) || !maps.Equal(notes, c.Notes) {
						t.Errorf("warnings %q, notes %q\nfile says %q, %q", said.warnings, notes, c.Warnings, c.Notes)
					}
					if err != nil {
						return
					}
					want, _ := hub(t, mergePatch(t, c.Object, c.Want))
					got := suffix.ReplaceAllString(string(marshal(t, spoke(t, obj, gvk))), "${1}abcde")
					if d := difference("", tree(t, []byte(got)), tree(t, marshal(t, spoke(t, want, gvk)))); len(d) > 0 {
						t.Errorf("the object differs from what the file says:\n%s", strings.Join(d, "\n"))
					}
				})
			}
		})
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

// heard are the warnings for a client.
type heard struct{ warnings []string }

// AddWarning notes a warning.
func (h *heard) AddWarning(_, text string) { h.warnings = append(h.warnings, text) }

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
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return p
}

// admitWith sends a write through both halves of a plugin.
func admitWith(
	ctx context.Context, t *testing.T, p admission.Interface, obj, old runtime.Object, gvk schema.GroupVersionKind,
	subresource string, op admission.Operation, who user.Info,
) error {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	namespace := m.GetNamespace()
	if gvk.Kind == "Namespace" { // so a server says
		namespace = m.GetName()
	}
	a := admission.NewAttributesRecord(obj, old, gvk, namespace, m.GetName(), resourceOf(t, gvk), subresource, op, nil,
		false, who)
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
	if gvk.Kind == "Binding" { // it comes through a subresource of pods
		return gvk.GroupVersion().WithResource("pods")
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
