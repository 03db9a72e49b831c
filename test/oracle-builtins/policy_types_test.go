package oraclebuiltins

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/kube-openapi/pkg/validation/spec"
	generated "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/kinds"
)

// gadgets is a custom kind of two versions. One has schema features that built-in kinds lack.
func gadgets() *catalog.Resource {
	version := func(name, properties string) *catalog.Version {
		return &catalog.Version{Name: name, Served: true, Source: func() (*apiextensionsv1.JSONSchemaProps, error) {
			s := &apiextensionsv1.JSONSchemaProps{}
			return s,
				json.Unmarshal([]byte(`{"type":"object","properties":{"spec":{"type":"object","properties":`+properties+
					`}}}`), s)
		}}
	}
	v1 := version("v1",
		`{"replicas":{"type":"integer"},"port":{"x-kubernetes-int-or-string":true},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"items":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"when":{"type":"string","format":"date-time"}}}},
		"limits":{"type":"object","additionalProperties":{"type":"number"}},"raw":{"type":"string","format":"byte"},"in":{"type":"boolean"}}`)
	v2 := version("v2", `{"count":{"type":"integer"}}`)
	return &catalog.Resource{
		Group: "example.com", Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList",
		Namespaced: true, Served: true,
		Versions: []*catalog.Version{v2, v1}, Storage: v1, Prefix: "example.com/gadgets",
		Definition: catalog.Definition{Name: "gadgets.example.com"},
	}
}

// theirs returns Kubernetes' type checker for the kinds in the catalog. Schemas of built-in kinds are its own. It reads
// schemas of custom kinds from our published documents, as its controller does.
func theirs(t *testing.T, served *catalog.Snapshot, documents *openapi.Handler) *upstream.TypeChecker {
	var groups []*restmapper.APIGroupResources
	for _, g := range served.Groups() {
		group := &restmapper.APIGroupResources{
			Group: metav1.APIGroup{Name: g.Name}, VersionedResources: map[string][]metav1.APIResource{},
		}
		for _, v := range g.Versions {
			group.Group.Versions = append(group.Group.Versions,
				metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Name, Version: v.Name})
			for _, r := range v.Resources {
				group.VersionedResources[v.Name] = append(group.VersionedResources[v.Name],
					metav1.APIResource{
						Name: r.Plural, SingularName: r.Singular, Kind: r.Kind, Namespaced: r.Namespaced,
					})
			}
		}
		groups = append(groups, group)
	}
	return &upstream.TypeChecker{
		RestMapper: restmapper.NewDiscoveryRESTMapper(groups),
		SchemaResolver: resolver.NewDefinitionsSchemaResolver(generated.GetOpenAPIDefinitions, k8sscheme.Scheme,
			scheme.Scheme).Combine(
			publishedSchemas{t, served, documents}),
	}
}

type publishedSchemas struct {
	*testing.T
	served    *catalog.Snapshot
	documents *openapi.Handler
}

func (p publishedSchemas) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	w := httptest.NewRecorder()
	p.documents.ServeHTTP(w,
		httptest.NewRequestWithContext(p.Context(), http.MethodGet, "/openapi/v3/apis/"+kind.Group+"/"+kind.Version,
			nil), p.served)
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	var doc struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		return nil, err
	}
	root := fmt.Sprintf("com.example.%s.%s", kind.Version, kind.Kind)
	if doc.Components.Schemas[root] == nil {
		return nil, fmt.Errorf("%v: %w", kind, resolver.ErrSchemaNotFound)
	}
	return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		s, ok := doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		return s, ok
	}, root)
}

// unique matches Kubernetes' names of types: the name of a kind and a number.
var unique = regexp.MustCompile(`\b([A-Z][A-Za-z]+)\d+\b`)

func withoutNumbers(warnings []admissionregistrationv1.ExpressionWarning) (out []string) {
	for _, w := range warnings {
		out = append(out, w.FieldRef+"\n"+unique.ReplaceAllString(w.Warning, "$1#"))
	}
	return out
}

// TestTypeWarnings compares the warnings about expressions of policies for many kinds.
func TestTypeWarnings(t *testing.T) {
	served := catalog.New(append(kinds.Resources(), gadgets())...).Snapshot()
	documents := openapi.New(openapi.Options{WriteError: func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusNotFound)
	}})
	their := theirs(t, served, documents)
	schemaOf := func(kind schema.GroupVersionKind) *spec.Schema {
		r := served.ByKind(kind.Group, kind.Kind)
		if r == nil || r.Version(kind.Version) == nil {
			return nil
		}
		s, err := documents.Schema(r, r.Version(kind.Version))
		if err != nil {
			t.Error(err)
		}
		return s
	}
	expressions := []string{
		"true", "object.spec.replicas > 1", "object.spec.replicas > '1'", "object.spec.replicsa > 1",
		"object.metadata.name == 'x'", "object.metadata.nmae == 'x'",
		"oldObject == null || object.spec == oldObject.spec", "object.spec > 3", "object == 3",
		"object.spec.template.spec.containers.all(c, c.image.startsWith('x'))",
		"object.spec.template.spec.containers.all(c, c.imag == '')",
		"object.spec.template.spec.containers.all(c, c.resources.limits.cpu == '1')",
		"object.spec.template.spec.containers.exists(c, c.ports.all(p, p.containerPort > 80))",
		"object.spec.template.metadata.labels['x'] == 3",
		"object.spec.strategy.rollingUpdate.maxSurge == 1", "has(object.spec.paused) && object.spec.paused",
		"object.data.x == 'y'", "object.data.size() < 3", "object.data == 3",
		"object.spec.port == 80", "object.spec.free.anything == 1", "object.spec.template.kind == 'X'",
		"object.spec.items.all(i, i.when < now)", "object.spec.items[0].name + 1 == 2",
		"object.spec.limits['a'] < 2.0", "object.spec.raw == b'x'", "object.spec.__in__", "object.spec.count == 1",
		"object.metadata.creationTimestamp > 1",
		"request.operation == 'CREATE'", "request.nothing == ''", "namespaceObject.metadata.name == 'x'",
		"namespaceObject.spec.nothing == 1", "authorizer.group('').resource('pods').check('get').allowed()",
		"authorizer.requestResource.check('get').allowed()", "params.spec.replicas == 1", "params.data.most == '3'",
		"params.data.most == 3", "nobody.knows", "object.spec.replicas >", "variables.v == 1",
		"variables.v == 'x'", "variables.list.all(x, x == 1)", "variables.broken == 1", "variables.none == 1",
		"object.spec.ports.all(p, p.targetPort == 80)", "object.spec.type == 'x' && object.spec.x == 1",
		"object.spec.schema.openAPIV3Schema.properties.x == 1", "object.spec.versions.all(v, v.name == 1)",
		"'x' + object.metadata.name", "[object.metadata.name, 1]", "object.items == 1",
		"quantity(object.spec.resources.requests.storage).isGreaterThan(quantity('1'))",
		"object.webhooks.all(w, w.nme == '')", "object.spec.jobTemplate.spec.template.spec.hostNetwork == 1",
	}
	rules := func(groups, versions, resources string) admissionregistrationv1.NamedRuleWithOperations {
		var r admissionregistrationv1.NamedRuleWithOperations
		r.APIGroups, r.APIVersions = strings.Split(groups, ","), strings.Split(versions, ",")
		r.Resources = strings.Split(resources, ",")
		return r
	}
	type named = []admissionregistrationv1.NamedRuleWithOperations
	compared := 0
	for _, matched := range []named{
		{rules("apps", "v1", "deployments")},
		{rules("apps", "v1", "deployments,statefulsets,daemonsets,replicasets/scale")},
		{rules("", "v1", "configmaps,secrets")},
		{rules("", "v1", "events,deployments,Pods,service")},
		{rules("example.com", "v1", "gadgets")},
		{rules("example.com", "v1,v2,v3", "gadgets,nothings")},
		{rules("apps", "*", "deployments"), rules("batch", "v1", "cronjobs")},
		{rules("*", "v1", "deployments"), rules("", "v1", "services,pods/status,*")},
		{
			rules("apiextensions.k8s.io,admissionregistration.k8s.io", "v1",
				"customresourcedefinitions,validatingwebhookconfigurations")},
		{
			rules("", "v1",
				"configmaps,endpoints,events,limitranges,namespaces,nodes,persistentvolumes,pods,podtemplates,resourcequotas,secrets,services"), rules("apps", "v1", "deployments")},
		{rules("", "v1", "persistentvolumeclaims")},
		{rules("nobody.example.com", "v1", "things")},
		nil,
	} {
		for _, param := range []*admissionregistrationv1.ParamKind{nil, {APIVersion: "v1", Kind: "ConfigMap"},
			{APIVersion: "example.com/v1", Kind: "Gadget"}, {APIVersion: "example.com/v1", Kind: "Nothing"}} {
			for _, variables := range [][]admissionregistrationv1.Variable{nil, {
				{Name: "v", Expression: "object.metadata.name"}, {Name: "list", Expression: "[1, 2]"},
				{Name: "broken", Expression: "object.metadata.nmae"}, {Name: "spec", Expression: "object.spec"},
			}} {
				policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
				policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
					ParamKind: param, Variables: variables,
					MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: matched},
				}
				some := expressions
				if param != nil || variables != nil { // upstream builds an environment for each expression and kind
					some = slices.DeleteFunc(slices.Clone(expressions),
						func(e string) bool {
							return !strings.Contains(e, "params") && !strings.Contains(e, "variables")
						})
				}
				for i, e := range some {
					v := admissionregistrationv1.Validation{Expression: e}
					if i%7 == 0 {
						v.MessageExpression = "'x' + " + e
					}
					policy.Spec.Validations = append(policy.Spec.Validations, v)
				}
				ours, want := withoutNumbers(registration.TypeWarnings(&policy.Spec, served, schemaOf)),
					withoutNumbers(their.Check(policy))
				compared += len(want)
				for i := range max(len(ours), len(want)) {
					if i >= len(ours) || i >= len(want) || ours[i] != want[i] {
						t.Errorf("%v, params %v: %d and %d warnings; the first that differs:\nours %s\ntheirs %s",
							matched, param, len(ours), len(want), at(ours, i), at(want, i))
						break
					}
				}
			}
		}
	}
	if compared < 300 {
		t.Errorf("only %d warnings compared", compared)
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}
