package stage

import (
	"bytes"
	"context"
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
	for _, name := range refused {
		delete(all, name)
	}
	maps.Copy(all, printing)
	maps.Copy(all, template.FuncMap{"Quote": quote, "YAML": indented, "NodeConditions": nodeConditions})
	for _, name := range Names {
		all[name] = func(...any) (string, error) { return "", errors.New("not to be had here") }
	}
	all[loopStep], all[callStep] = func() string { return "" }, func() string { return "" }
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

// outline is a parsed template. It is safe for concurrent use.
type outline struct {
	parsed *template.Template
	used   []string // the names of the functions
	idle   sync.Pool
}

// sheet is a copy of a template with its own budget, for one execution at a time.
type sheet struct {
	budget
	own *template.Template
}

func parseTemplate(text string) (*outline, error) {
	if text = strings.TrimSpace(text); len(text) > textMost {
		return nil, fmt.Errorf("template: has %d bytes: use %d at most", len(text), textMost)
	}
	parsed, err := template.New("template").Funcs(builtin()).Parse(text)
	if err != nil {
		return nil, err
	}
	return &outline{parsed: parsed, used: instrument(parsed)}, nil
}

// take returns an exclusive sheet, with a full budget.
func (t *outline) take() (*sheet, error) {
	s, _ := t.idle.Get().(*sheet)
	if s == nil {
		own, err := t.parsed.Clone()
		if err != nil {
			return nil, err
		}
		s = &sheet{own: own}
		guarded := template.FuncMap{
			loopStep: func() (string, error) { return "", s.step(1) },
			callStep: func() (string, error) { return "", s.step(stepsMost / callsMost) },
		}
		for _, name := range t.used {
			if f := builtin()[name]; f != nil && guarded[name] == nil {
				guarded[name] = s.guard(name, f)
			}
		}
		own.Funcs(guarded)
	}
	s.budget = newBudget(context.Background())
	return s, nil
}

// outputLimit is the largest output of a template in bytes, as much as etcd accepts.
const outputLimit = 3 << 19

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
func render(t *outline, o *Object, with Functions) ([]byte, error) {
	if o.forTemplates == nil {
		d := json.NewDecoder(bytes.NewReader(o.JSON))
		d.UseNumber()
		if err := d.Decode(&o.forTemplates); err != nil {
			return nil, err
		}
	}
	s, err := t.take()
	if err != nil {
		return nil, err
	}
	defer t.idle.Put(s)
	out := &limited{}
	if err := s.own.Funcs(with).Execute(out, o.forTemplates); err != nil {
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
