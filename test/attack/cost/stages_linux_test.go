package cost

import (
	"fmt"
	"net/http"
)

// templates are texts of Stages that would take all memory or all time, by their names. The server evaluates them for
// the pods of stagedPods, after it has accepted the pods.
var templates = map[string]string{
	"repeat":  `{{ repeat 2000000000 "x" }}`,
	"until":   `{{ range until 300000000 }}x{{ end }}`,
	"cat":     `{{ $x := "xxxxxxxx" }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}{{ $x }}`,
	"to-json": `{{ $x := "x" }}{{ range until 100 }}{{ $x = toJson $x }}{{ end }}`,
	"loop":    `{{ range 9000000000 }}{{ range 9000000000 }}{{ end }}{{ end }}`,
}

// keys are jq expressions of Stages' selectors.
var keys = map[string]string{
	"reduce": `reduce range(34) as $i ([1]; . + .) | length`,
	"nested": `reduce range(34) as $i ({}; {a: ., b: .}) | tojson | length`,
	"last":   `last(range(1000000000))`,
	"times":  `"x" * 1000000000`,
}

// stages returns a Stage for each template and key, for the pod of its name, in addition to the built-in behavior.
func stages() (out []string) {
	for name, text := range sorted(templates) {
		out = append(out, stage(name, ".metadata.name", "phase: Running\nmessage: '"+text+"'\n"))
	}
	for name, text := range sorted(keys) {
		out = append(out, stage(name, text, "phase: Running\n"))
	}
	return out
}

func stage(name, key, template string) string {
	return fmt.Sprintf(`{"apiVersion":"kwok.x-k8s.io/v1alpha1","kind":"Stage","metadata":{"name":%[1]q,"annotations":`+
		`{"bowsprit.dev/simulate-beside":"true"}},"spec":{"resourceRef":{"apiGroup":"v1","kind":"Pod"},"selector":`+
		`{"matchLabels":{"stage":%[1]q},"matchExpressions":[{"key":%[2]q,"operator":"Exists"}]},`+
		`"next":{"statusTemplate":%[3]q}}}`, name, key, template)
}

// stagedPods returns the pods that the Stages select. A failing template is reported by an event about its pod. A
// failing key selects no Stage, so its pod runs.
func stagedPods() (out []attack) {
	add := func(family, name string, is effect) {
		out = append(out, attack{
			family: family, name: name, effect: &is,
			method: http.MethodPost, path: core + "pods", contentType: asJSON,
			body: fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%[1]q,"labels":{"stage":%[1]q}},`+
				`"spec":{"containers":[{"name":"c","image":"i"}]}}`, name),
		})
	}
	for name := range sorted(templates) {
		add("template", name, effect{core + "events?fieldSelector=involvedObject.name%3D" + name, `"StageFailed"`})
	}
	for name := range sorted(keys) {
		add("jq", name, effect{core + "pods?fieldSelector=metadata.name%3D" + name, `"phase":"Running"`})
	}
	return out
}
