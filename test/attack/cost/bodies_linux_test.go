package cost

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "sigs.k8s.io/json"
)

// The media types of bodies.
const (
	asJSON, asYAML, asCBOR = "application/json", "application/yaml", "application/cbor"
	asProtobuf             = "application/vnd.kubernetes.protobuf"
	asMerge                = "application/merge-patch+json"
	asStrategic            = "application/strategic-merge-patch+json"
	asJSONPatch            = "application/json-patch+json"
	asApply                = "application/apply-patch+yaml"
)

const core = "/api/v1/namespaces/default/"

// A site is a place in an object that takes any number of elements.
type site struct {
	name string
	// path is the collection, and object the text of an object with @ in the place of the elements.
	path, object string
	// elements are the texts of elements, which are repeated with a comma between; # in one is its number.
	elements []string
}

// sites are lists and maps of built-in and custom kinds. Objects have the name "target", as the objects that prepare
// makes.
var sites = []site{
	{"ownerReferences", core + "configmaps", meta("v1", "ConfigMap", `"ownerReferences":[@]`, ""),
		each(`{}`, `{"uid":"#"}`)},
	{"managedFields", core + "configmaps", meta("v1", "ConfigMap", `"managedFields":[@]`, ""),
		each(`{}`, `{"manager":"#"}`, `{"fieldsV1":{"f:a#":{}}}`)},
	{"finalizers", core + "configmaps", meta("v1", "ConfigMap", `"finalizers":[@]`, ""), each(`""`, `"a/b#"`)},
	{"labels", core + "configmaps", meta("v1", "ConfigMap", `"labels":{@}`, ""), each(`"#":""`)},
	{"annotations", core + "configmaps", meta("v1", "ConfigMap", `"annotations":{@}`, ""), each(`"a#":""`)},
	{"data", core + "configmaps", meta("v1", "ConfigMap", "", `"data":{@}`), each(`"#":""`, `"#":null`)},
	{"binaryData", core + "secrets", meta("v1", "Secret", "", `"data":{@}`), each(`"#":""`)},
	{"unknown fields", core + "configmaps", meta("v1", "ConfigMap", "", `@`), each(`"a#":{}`, `"a":1`)},
	{"an unknown list", core + "configmaps", meta("v1", "ConfigMap", "", `"x":[@]`),
		each(`{}`, `[]`, `1`, `null`, `""`)},
	{"containers", core + "pods", meta("v1", "Pod", "", `"spec":{"containers":[@]}`),
		each(`{}`, `{"name":"#"}`, `null`)},
	{"initContainers", core + "pods", pod(`"initContainers":[@]`), each(`{}`)},
	{"volumes", core + "pods", pod(`"volumes":[@]`), each(`{}`, `{"name":"#"}`)},
	{"tolerations", core + "pods", pod(`"tolerations":[@]`), each(`{}`)},
	{"hostAliases", core + "pods", pod(`"hostAliases":[@]`), each(`{}`)},
	{"imagePullSecrets", core + "pods", pod(`"imagePullSecrets":[@]`), each(`{}`, `{"name":"#"}`)},
	{"node affinity", core + "pods", pod(`"affinity":{"nodeAffinity":{` +
		`"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[@]}}}`), each(`{}`, `{"matchExpressions":[{}]}`)},
	{"spread constraints", core + "pods", pod(`"topologySpreadConstraints":[@]`), each(`{}`)},
	{"args", core + "pods", container(`"args":[@]`), each(`""`, `"#"`)},
	{"env", core + "pods", container(`"env":[@]`), each(`{}`, `{"name":"#"}`)},
	{"volume mounts", core + "pods", container(`"volumeMounts":[@]`), each(`{}`)},
	{"limits", core + "pods", container(`"resources":{"limits":{@}}`), each(`"#":"1"`)},
	{"env of a Deployment", "/apis/apps/v1/namespaces/default/deployments",
		workload("apps/v1", "Deployment", `"env":[@]`), each(`{}`, `{"name":"#"}`)},
	{"ports of a StatefulSet", "/apis/apps/v1/namespaces/default/statefulsets",
		workload("apps/v1", "StatefulSet", `"ports":[@]`), each(`{}`)},
	{"ports", core + "services", meta("v1", "Service", "", `"spec":{"ports":[@]}`), each(`{}`, `{"port":1}`)},
	{"subsets", core + "endpoints", meta("v1", "Endpoints", "", `"subsets":[@]`), each(`{}`, `{"addresses":[{}]}`)},
	{"endpoints", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
		meta("discovery.k8s.io/v1", "EndpointSlice", "", `"addressType":"IPv4","endpoints":[@]`), each(`{}`)},
	{"rules", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
		meta("rbac.authorization.k8s.io/v1", "Role", "", `"rules":[@]`), each(`{}`, `{"verbs":["a"]}`)},
	{"verbs", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		meta("rbac.authorization.k8s.io/v1", "ClusterRole", "",
			`"rules":[{"apiGroups":[""],"resources":["x"],"verbs":[@]}]`), each(`""`, `"a#"`)},
	{"subjects", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		meta("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "",
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"x"},"subjects":[@]`),
		each(`{}`)},
	{"ingress rules", "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
		meta("networking.k8s.io/v1", "Ingress", "", `"spec":{"rules":[@]}`), each(`{}`)},
	{"network policy", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
		meta("networking.k8s.io/v1", "NetworkPolicy", "", `"spec":{"podSelector":{},"ingress":[@]}`),
		each(`{}`, `{"from":[{}]}`)},
	{"webhooks", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		meta("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", `"webhooks":[@]`), each(`{}`)},
	{"validations", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
		meta("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", `"spec":{"validations":[@]}`),
		each(`{}`, `{"expression":"true"}`)},
	{"versions", definitions, meta("apiextensions.k8s.io/v1", "CustomResourceDefinition", "",
		`"spec":{"group":"g.example.com","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[@]}`),
		each(`{}`, `{"name":"v#"}`)},
	{"properties", definitions, schemaOf(`"type":"object","properties":{@}`), each(`"#":{}`, `"#":{"type":"string"}`)},
	{"allOf", definitions, schemaOf(`"type":"object","allOf":[@]`), each(`{}`, `{"allOf":[{}]}`)},
	{"enum", definitions, schemaOf(`"type":"object","properties":{"a":{"type":"string","enum":[@]}}`),
		each(`""`, `"#"`)},
	{"metrics", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
		meta("autoscaling/v2", "HorizontalPodAutoscaler", "",
			`"spec":{"scaleTargetRef":{"kind":"A","name":"a"},"maxReplicas":3,"metrics":[@]}`), each(`{}`)},
	{"devices", "/apis/resource.k8s.io/v1/resourceslices", meta("resource.k8s.io/v1", "ResourceSlice", "",
		`"spec":{"driver":"a.example.com","pool":{"name":"p","resourceSliceCount":1},"allNodes":true,"devices":[@]}`),
		each(`{}`, `{"name":"a#"}`)},
	{"flow rules", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", meta("flowcontrol.apiserver.k8s.io/v1",
		"FlowSchema", "", `"spec":{"priorityLevelConfiguration":{"name":"x"},"rules":[@]}`), each(`{}`)},
	{"an access review", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		meta("authorization.k8s.io/v1", "SelfSubjectAccessReview", "",
			`"spec":{"resourceAttributes":{"verb":"list","resource":"pods","labelSelector":{"requirements":[@]}}}`),
		each(`{}`, `{"key":"a","operator":"In","values":["b"]}`)},
	{"groups of a review", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		meta("authorization.k8s.io/v1", "SubjectAccessReview", "",
			`"spec":{"resourceAttributes":{"verb":"list","resource":"pods"},"user":"x","groups":[@]}`),
		each(`""`, `"#"`)},
	{"audiences", "/apis/authentication.k8s.io/v1/tokenreviews",
		meta("authentication.k8s.io/v1", "TokenReview", "", `"spec":{"token":"x","audiences":[@]}`), each(`""`)},
	{"a free custom field", widgets, meta("cost.example.com/v1", "Widget", "", `"free":{"a":[@]}`),
		each(`{}`, `[]`, `0`, `"#"`, `{"a":{}}`)},
	{"a custom map", widgets, meta("cost.example.com/v1", "Widget", "", `"map":[@]`), each(`{}`, `{"name":"#"}`)},
	{"a custom set", widgets, meta("cost.example.com/v1", "Widget", "", `"set":[@]`), each(`""`, `"#"`)},
	{"custom properties", widgets, meta("cost.example.com/v1", "Widget", "", `"props":{@}`),
		each(`"#":""`, `"#":null`)},
	{"a custom list with defaults", widgets, meta("cost.example.com/v1", "Widget", "", `"defaulted":[@]`), each(`{}`)},
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	widgets     = "/apis/cost.example.com/v1/namespaces/default/widgets"
)

// widget is the definition of the custom kind.
var widget = schemaNamed("widgets", "Widget", `"type":"object","properties":{`+
	`"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},`+
	`"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":`+
	`{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}},`+
	`"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},`+
	`"props":{"type":"object","additionalProperties":{"type":"string"}},`+
	`"defaulted":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"x"},`+
	`"b":{"type":"object","default":{},"properties":{"c":{"type":"integer","default":7}}}}}}}`)

func each(elements ...string) []string { return elements }

func meta(apiVersion, kind, metadata, rest string) string {
	for _, more := range []*string{&metadata, &rest} {
		if *more != "" {
			*more = "," + *more
		}
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"target"%s}%s}`, apiVersion, kind, metadata, rest)
}

func pod(spec string) string {
	return meta("v1", "Pod", "", `"spec":{"containers":[{"name":"c","image":"i"}],`+spec+`}`)
}

func container(field string) string {
	return meta("v1", "Pod", "", `"spec":{"containers":[{"name":"c","image":"i",`+field+`}]}`)
}

func workload(apiVersion, kind, field string) string {
	return meta(apiVersion, kind, "", `"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":`+
		`{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i",`+field+`}]}}}`)
}

func schemaOf(schema string) string { return schemaNamed("as", "A", schema) }

func schemaNamed(plural, kind, schema string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":`+
		`"%[1]s.cost.example.com"},"spec":{"group":"cost.example.com","scope":"Namespaced","names":{"plural":"%[1]s",`+
		`"kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{%[3]s}}}]}}`,
		plural, kind, schema)
}

// fill returns the object with so many elements that it has about size bytes.
func (s *site) fill(element string, size int) string {
	before, after, _ := strings.Cut(s.object, "@")
	var b strings.Builder
	b.WriteString(before)
	for n := 0; b.Len() < size; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(element, "#", fmt.Sprint(n)))
	}
	b.WriteString(after)
	return b.String()
}

// bodies returns the hostile bodies: each site with each element as a creation, and with the first one in the other
// forms and verbs.
func bodies(t *testing.T, size int) (out []attack) {
	for _, s := range sites {
		for i, element := range s.elements {
			text := s.fill(element, size)
			add := func(form, method, path, contentType, body string) {
				name := fmt.Sprintf("%s %s, %s", s.name, element, form)
				out = append(out, attack{
					family: "body", name: name, method: method, path: path, contentType: contentType, body: body,
				})
			}
			add("JSON", http.MethodPost, s.path, asJSON, text)
			if i > 0 || strings.Contains(s.path, "review") {
				continue
			}
			one := s.path + "/target"
			switch len(out) % 7 { // each site in some of the forms, and all forms at some sites
			case 0:
				add("YAML", http.MethodPost, s.path, asYAML, text)
			case 1:
				add("CBOR", http.MethodPost, s.path, asCBOR, toCBOR(t, text))
			case 2:
				add("update", http.MethodPut, one, asJSON, text)
			case 3:
				add("merge patch", http.MethodPatch, one, asMerge, text)
			case 4:
				whole := `[{"op":"add","path":"","value":` + text + `}]`
				add("JSON patch", http.MethodPatch, one, asJSONPatch, whole)
			case 5:
				add("apply", http.MethodPatch, one+"?fieldManager=x&force=true", asApply, text)
			default:
				if s.path != widgets {
					add("strategic patch", http.MethodPatch, one, asStrategic, text)
				}
			}
		}
	}
	return append(out, messages(size)...)
}

// messages returns bodies in protobuf: a message with one field repeated, empty each time. The path is the numbers of
// the fields from the object to it.
func messages(size int) (out []attack) {
	for _, m := range []struct {
		name, apiVersion, kind, path string
		fields                       []int
	}{
		{"managedFields", "v1", "Pod", core + "pods", []int{1, 17}},
		{"ownerReferences", "v1", "ConfigMap", core + "configmaps", []int{1, 13}},
		{"finalizers", "v1", "ConfigMap", core + "configmaps", []int{1, 14}},
		{"labels", "v1", "ConfigMap", core + "configmaps", []int{1, 11}},
		{"data", "v1", "ConfigMap", core + "configmaps", []int{2}},
		{"containers", "v1", "Pod", core + "pods", []int{2, 2}},
		{"volumes", "v1", "Pod", core + "pods", []int{2, 1}},
		{"tolerations", "v1", "Pod", core + "pods", []int{2, 22}},
		{"conditions", "v1", "Pod", core + "pods", []int{3, 2}},
		{"container statuses", "v1", "Pod", core + "pods", []int{3, 8}},
		{"rules", "rbac.authorization.k8s.io/v1", "Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
			[]int{2}},
		{"service ports", "v1", "Service", core + "services", []int{2, 1}},
		{"images of a node", "v1", "Node", "/api/v1/nodes", []int{3, 8}},
		{"endpoints", "discovery.k8s.io/v1", "EndpointSlice",
			"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", []int{2}},
		{"unknown fields", "v1", "Pod", core + "pods", []int{2, 200}},
		{"env of a Deployment", "apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments",
			[]int{2, 3, 2, 2, 7}},
	} {
		path := m.path
		out = append(out, attack{family: "protobuf", name: m.name, method: http.MethodPost, path: path,
			contentType: asProtobuf, body: envelope(m.apiVersion, m.kind, message(m.fields, size))})
	}
	return out
}

// message returns a message with the last of the fields repeated to about size bytes.
func message(fields []int, size int) []byte {
	last := binary.AppendUvarint(nil, uint64(fields[len(fields)-1])<<3|2)
	out := []byte(strings.Repeat(string(append(last, 0)), size/(len(last)+1)))
	for i := len(fields) - 2; i >= 0; i-- {
		head := binary.AppendUvarint(nil, uint64(fields[i])<<3|2)
		out = append(binary.AppendUvarint(head, uint64(len(out))), out...)
	}
	return out
}

// envelope encloses a message as the Kubernetes API does.
func envelope(apiVersion, kind string, message []byte) string {
	field := func(number byte, content string) string {
		return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(content)))) + content
	}
	return "k8s\x00" + field(1, field(1, apiVersion)+field(2, kind)) + field(2, string(message))
}

func toCBOR(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	out, err := direct.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
