package cost

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// inputSites are lists whose elements a library or a rule once compared with each other, or compiled.
var inputSites = []site{
	{"usages", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
		meta("certificates.k8s.io/v1", "CertificateSigningRequest", "",
			`"spec":{"signerName":"a.b/c","request":"AAAA","usages":[@]}`), each(`"u#"`)},
	{"match conditions", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		meta("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "",
			`"webhooks":[{"name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":`+
				`{"url":"https://a"},"matchConditions":[@]}]`), each(`{"name":"a#","expression":"true"}`)},
	{"variables", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
		meta("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "",
			`"spec":{"validations":[{"expression":"true"}],"variables":[@]}`), each(`{"name":"a#","expression":"1"}`)},
	{"audit annotations", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
		meta("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "",
			`"spec":{"validations":[{"expression":"true"}],"auditAnnotations":[@]}`),
		each(`{"key":"a#","valueExpression":"'a'"}`)},
	{"list map keys", definitions, schemaOf(`"type":"object","properties":{"a":{"type":"array",` +
		`"x-kubernetes-list-type":"map","items":{"type":"object"},"x-kubernetes-list-map-keys":[@]}}`), each(`"p#"`)},
	{"required properties", definitions, schemaOf(`"type":"object","required":[@]`), each(`"p#"`)},
	{"patterns of a schema", definitions, schemaOf(`"type":"object","properties":{@}`),
		each(`"p#":{"type":"string","pattern":"a{1000}#"}`)},
	{"patterns of rules", definitions, schemaOf(`"type":"object","x-kubernetes-validations":[@]`),
		each(`{"rule":"'a'.matches('a{1000}#')"}`)},
	{"IP blocks", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
		meta("networking.k8s.io/v1", "NetworkPolicy", "", `"spec":{"podSelector":{},"egress":[{"to":[@]}]}`),
		each(`{"ipBlock":{"cidr":"10.0.0.0/8"}}`)},
	{"topology values", "/apis/storage.k8s.io/v1/storageclasses",
		meta("storage.k8s.io/v1", "StorageClass", "", `"provisioner":"a","allowedTopologies":[{`+
			`"matchLabelExpressions":[{"key":"a","values":[@]}]}]`), each(`"v#"`)},
}

// inputs returns attacks on libraries whose work is not linear in their input.
func inputs(size int) (out []attack) {
	add := func(name, method, path, contentType, body string) {
		out = append(out, attack{
			family: "input", name: name, method: method, path: path, contentType: contentType, body: body,
		})
	}
	// The charge for memory refuses larger ones of some.
	for _, size := range []int{size / 3, size / 10, size / 30} {
		for _, s := range inputSites {
			name := fmt.Sprintf("%s, %d kB", s.name, size/1000)
			add(name, http.MethodPost, s.path+"?dryRun=All", asJSON, s.fill(s.elements[0], size))
		}
		out = append(out, patches(size)...)
	}
	add("directives of YAML", http.MethodPost, core+"configmaps", asYAML,
		numbered("", "%%TAG !a%d! b\n", "---\na: b\n", min(size/15, 45_000)))
	for _, bits := range []int{100_000, 400_000, 4_000_000} {
		request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: hostile.Request(bits)})
		add(fmt.Sprintf("a key of %d bits", bits), http.MethodPost,
			"/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All", asJSON,
			meta("certificates.k8s.io/v1", "CertificateSigningRequest", "", fmt.Sprintf(
				`"spec":{"signerName":"a.b/c","usages":["client auth"],"request":%q}`,
				base64.StdEncoding.EncodeToString(request))))
	}
	for name, piece := range sorted(map[string]string{
		"slashes": "/", "segments": "/a", "dots": "/..", "escapes": "%61",
	}) {
		add("a path of "+name, http.MethodGet, "/api/v1"+strings.Repeat(piece, 700_000/len(piece)), "", "")
	}
	return out
}

// patches returns patches of lists.
func patches(size int) (out []attack) {
	add := func(name, path, contentType, body string) {
		out = append(out, attack{family: "input", name: fmt.Sprintf("%s, %d kB", name, size/1000),
			method: http.MethodPatch, path: path, contentType: contentType, body: body})
	}
	finalizers := site{object: `{"metadata":{"finalizers":[@]}}`}
	owners := site{object: `{"metadata":{"ownerReferences":[@]}}`}
	order := site{object: `{"metadata":{"finalizers":["a/b0"],"$setElementOrder/finalizers":[@]}}`}
	const target = core + "configmaps/target?dryRun=All"
	add("strategic finalizers", target, asStrategic, finalizers.fill(`"a/b#"`, size))
	add("strategic owners", target, asStrategic,
		owners.fill(`{"apiVersion":"v1","kind":"Pod","name":"a","uid":"#"}`, size))
	add("a strategic order", target, asStrategic, order.fill(`"a/b#"`, size))
	insertions := site{object: `[{"op":"add","path":"/free","value":{"a":[` + strings.Repeat("1,", size/4) + `1]}},@]`}
	add("insertions", widgets+"/target?dryRun=All", asJSONPatch,
		insertions.fill(`{"op":"add","path":"/free/a/0","value":1}`, size))
	return out
}
