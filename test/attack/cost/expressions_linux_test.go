package cost

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// expressions returns small texts that are expensive to read or to evaluate, by their language. size makes them as long
// as the server accepts.
func expressions(size int) (out []attack) {
	long := func(piece string) string { return strings.Repeat(piece, size/3/len(piece)) }
	nested := func(open, inner, shut string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	add := func(family, name, method, path, body string) {
		out = append(out, attack{
			family: family, name: name, method: method, path: path, contentType: asJSON, body: body,
		})
	}
	for name, quantity := range sorted(map[string]string{
		"a small exponent":         "1e-1000000000",
		"a large exponent":         "1e1000000000",
		"digits":                   long("9"),
		"digits behind the point":  "0." + long("1"),
		"zeros":                    long("0"),
		"a suffix":                 long("9") + "Ei",
		"an exponent of 18 digits": "1e999999999999999999",
		"both":                     "0.0000000001e-99999999",
		"a minus":                  "-1e-999999999",
		"a capital":                "1E-2147483648",
		"milli":                    long("9") + "m",
	}) {
		add("quantity", name+" of a claim", http.MethodPost, core+"persistentvolumeclaims",
			meta("v1", "PersistentVolumeClaim", "", fmt.Sprintf(
				`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":%q}}}`, quantity)))
		add("quantity", name+" of a container", http.MethodPost, core+"pods?dryRun=All",
			container(fmt.Sprintf(`"resources":{"limits":{"cpu":%q}}`, quantity)))
		add("quantity", name+" of a quota", http.MethodPost, core+"resourcequotas?dryRun=All",
			meta("v1", "ResourceQuota", "", fmt.Sprintf(`"spec":{"hard":{"cpu":%q}}`, quantity)))
	}
	for name, rule := range sorted(map[string]string{
		"parentheses":        nested("(", "true", ")", 20_000),
		"lists":              nested("[", "1", "]", 20_000) + " == []",
		"a long sum":         "1" + long("+1") + " == 2",
		"a long or":          "true" + long(" || true"),
		"nots":               long("!") + "true",
		"conditions":         nested("(true ? ", "true", " : false)", 5_000),
		"macros":             nested("[1,2,3,4,5,6,7,8,9].all(x, ", "true", ")", 12),
		"a string":           `"` + long("a") + `" == ""`,
		"a pattern":          `"` + strings.Repeat("a", 5_000) + `".matches("(a*)*b")`,
		"a repeated pattern": `"x".matches("((((a{100}){100}){100}){100})")`,
		"a quantity":         `quantity("1e-1000000000").isGreaterThan(quantity("1"))`,
		"selections":         "self" + long(".a") + " == 1",
		"indexes":            "self" + long("[0]") + " == 1",
		"a growing string": `[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, "x".replace("x", "` +
			strings.Repeat("y", 500) + `"))).size() > 0`,
		"a map literal": "{" + long(`1:1,`) + "2:2}.size() == 1",
		"bindings":      nested("cel.bind(x, [1,1], ", "true", ")", 500),
		"a semver":      `semver("` + long("1") + `.0.0").major() == 1`,
		"an IP":         `ip("` + long(":") + `").family() == 4`,
		"a URL":         `url("http://` + long("a/") + `").getHost() == ""`,
		"a format":      `"` + long("%s") + `".format([]) == ""`,
	}) {
		add("CEL", name+" of a definition", http.MethodPost, definitions+"?dryRun=All", schemaOf(fmt.Sprintf(
			`"type":"object","x-kubernetes-validations":[{"rule":%q}]`, rule)))
		add("CEL", name+" of a policy", http.MethodPost,
			"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All",
			meta("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", fmt.Sprintf(
				`"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],`+
					`"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":%q}]}`, rule)))
	}
	for name, pattern := range sorted(map[string]string{
		"nested repeats": "(((((a{100}){100}){100}){100}){100})",
		"a long choice":  "(" + long("a|") + "b)",
		"groups":         nested("(", "a", ")", 20_000),
		"classes":        long("[a-z]"),
		"stars":          nested("(", "a", ")*", 500),
		"unicode":        long(`\\pL`),
		"a count":        "a{1000}{1000}",
	}) {
		add("pattern", name, http.MethodPost, definitions+"?dryRun=All",
			schemaOf(fmt.Sprintf(`"type":"object","properties":{"a":{"type":"string","pattern":%q}}`, pattern)))
	}
	for name, path := range sorted(map[string]string{
		"fields":    long(".a"),
		"indexes":   ".a" + long("[0]"),
		"descents":  long("..a"),
		"filters":   ".a" + long("[?(@.a==1)]"),
		"brackets":  nested(".a[", "0", "]", 10_000),
		"wildcards": long("[*]"),
		"unions":    ".a[" + long("0,") + "1]",
		"quotes":    ".a['" + long("a") + "']",
	}) {
		column := fmt.Sprintf(`"additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":%q}]`, path)
		add("JSONPath", name, http.MethodPost, definitions+"?dryRun=All",
			strings.Replace(schemaOf(`"type":"object"`), `"served":true`, `"served":true,`+column, 1))
	}
	const line = 700_000 // the server reads a head of a megabyte
	for name, selector := range sorted(map[string]string{
		"keys":             strings.Repeat("a,", line/4),
		"values":           "a in (" + strings.Repeat("b,", line/4) + "c)",
		"equalities":       strings.Repeat("a=b,", line/8) + "a=b",
		"parentheses":      "a in " + strings.Repeat("(", line/4),
		"nots":             strings.Repeat("!", line/4),
		"different values": numbered("a in (", "b%d,", "c)", line/20),
		"different keys":   numbered("", "k%d=v,", "x=y", line/20),
	}) {
		for _, parameter := range []string{"labelSelector", "fieldSelector"} {
			out = append(out, attack{family: "selector", name: name + " as " + parameter, method: http.MethodGet,
				path: core + "configmaps?" + parameter + "=" + url.QueryEscape(selector)})
		}
	}
	return append(out, stagedPods()...)
}

// sorted yields a map in the order of its keys.
func sorted(of map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !yield(name, of[name]) {
				return
			}
		}
	}
}

func numbered(begin, piece, end string, n int) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := range n {
		fmt.Fprintf(&b, piece, i)
	}
	return b.String() + end
}
