package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Functions are the template functions that need the server. Each of Names must be defined.
type Functions = template.FuncMap

// Names are the functions that the caller has to bring, as kwok has them.
var Names = []string{
	"Now", "now", "StartTime", "Version", "NodeIP", "NodeName", "NodePort", "NodeIPWith", "NodeIPsWith", "PodIP",
	"PodIPWith", "PodIPsWith",
}

// builtin are the functions that need no server, and in the place of the others some that fail.
var builtin = sync.OnceValue(func() template.FuncMap {
	all := sprig.TxtFuncMap()
	// A Stage must not read the server's environment, nor have it send requests.
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(all, name)
	}
	maps.Copy(all, template.FuncMap{"Quote": quote, "YAML": indented, "NodeConditions": nodeConditions})
	for _, name := range Names {
		all[name] = func(...any) (string, error) { return "", errors.New("not to be had here") }
	}
	return all
})

// quote writes a value as a quoted text.
func quote(v any) string {
	data, err := json.Marshal(v)
	switch {
	case err != nil:
		return strconv.Quote(fmt.Sprint(v))
	case data[0] == '"':
		return string(data)
	}
	return strconv.Quote(string(data))
}

// indented writes a value as YAML on new lines, indented by two spaces per level.
func indented(v any, levels ...int) (string, error) {
	data, err := yaml.Marshal(v)
	if err != nil {
		return "", err
	}
	if len(levels) == 1 && levels[0] > 0 {
		return strings.ReplaceAll("\n"+string(data), "\n", "\n"+strings.Repeat("  ", levels[0])), nil
	}
	return string(data), nil
}

// nodeConditions returns the conditions of a healthy node.
func nodeConditions() []any {
	var out []any
	for _, c := range [][4]string{
		{string(corev1.NodeReady), "True", "KubeletReady", "kubelet is posting ready status"},
		{"MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{"NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"},
	} {
		out = append(out, map[string]any{
			"type": c[0], "status": c[1], "reason": c[2], "message": c[3],
			"lastHeartbeatTime": nil, "lastTransitionTime": nil,
		})
	}
	return out
}

func parseTemplate(text string) (*template.Template, error) {
	return template.New("template").Funcs(builtin()).Parse(strings.TrimSpace(text))
}

// outputLimit is the largest output of a template in bytes, which is more than etcd accepts.
const outputLimit = 4 << 20

// limited is a buffer that fails when the output is too large.
type limited struct{ bytes.Buffer }

// Write fails if the limit is reached.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > outputLimit {
		return 0, fmt.Errorf("it writes more than %d bytes", outputLimit)
	}
	return l.Buffer.Write(p)
}

// render executes a template with an object, and returns the YAML that it writes as JSON.
func render(t *template.Template, o *Object, with Functions) ([]byte, error) {
	if o.forTemplates == nil {
		d := json.NewDecoder(bytes.NewReader(o.JSON))
		d.UseNumber()
		if err := d.Decode(&o.forTemplates); err != nil {
			return nil, err
		}
	}
	own, err := t.Clone() // the functions are bound to this object
	if err != nil {
		return nil, err
	}
	out := &limited{}
	if err := own.Funcs(with).Execute(out, o.forTemplates); err != nil {
		return nil, err
	}
	data, err := yaml.YAMLToJSON(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the template writes no YAML: %w", err)
	}
	return data, nil
}

// Time returns how templates see a time.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
