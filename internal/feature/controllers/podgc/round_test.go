package podgc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func TestStrays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	deleted := func(ago time.Duration) string {
		return fmt.Sprintf(`"deletionTimestamp":%q`, start.Add(-ago).Format(time.RFC3339))
	}
	for _, test := range []struct {
		name       string
		pods       []string // name, metadata, spec and status, separated by |
		nodes      map[string]nodeState
		absent     map[string]time.Time
		terminated int
		want       string // "name", or "name!" with the condition
		after      string // absent
	}{
		{name: "nothing to do", pods: []string{"a|||", `b||"nodeName":"n"|`}, nodes: map[string]nodeState{"n": {}}},
		{name: "an absent node is waited for", pods: []string{`a||"nodeName":"x"|`}, after: "x"},
		{
			name: "not for ever", pods: []string{`a||"nodeName":"x"|`, `b||"nodeName":"y"|`, "c|||"},
			absent: map[string]time.Time{
				"x": start.Add(-nodeQuarantine), "y": start.Add(-nodeQuarantine + time.Second), "z": start,
			}, want: "a!", after: "y",
		},
		{
			name: "nor if the pod is to go anyway", pods: []string{`a|` + deleted(0) + `|"nodeName":"x"|`}, want: "a!",
			after: "x",
		},
		{
			name: "a node out of service",
			pods: []string{`a|` + deleted(0) + `|"nodeName":"n"|`, `b||"nodeName":"n"|`, `c|` + deleted(0) +
				`|"nodeName":"m"|`},
			nodes: map[string]nodeState{"n": {outOfService: true}, "m": {}}, want: "a",
		},
		{
			name: "deleted and nowhere",
			pods: []string{"a|" + deleted(settling) + "||", "b|" + deleted(settling-time.Second) + "||"}, want: "a",
		},
		{
			name: "too many that have ended", terminated: 1,
			pods: []string{
				`old|"creationTimestamp":"2026-01-01T00:00:00Z"||"phase":"Succeeded"`,
				`older|"creationTimestamp":"2025-01-01T00:00:00Z"||"phase":"Running"`,
				`new|"creationTimestamp":"2026-03-01T00:00:00Z"||"phase":"Failed","reason":"Evicted"`,
				`newer|"creationTimestamp":"2026-04-01T00:00:00Z"||"phase":"Failed"`,
			},
			want: "new old",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			round := podRound{now: start, nodes: test.nodes, absent: test.absent, terminated: test.terminated}
			if round.absent == nil {
				round.absent = map[string]time.Time{}
			}
			for _, p := range test.pods {
				parts := strings.Split(p, "|")
				text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{%s},"spec":{%s},"status":{%s}}`,
					parts[1], parts[2], or(parts[3], `"phase":"Pending"`))
				e, err := watchcache.NewEntry("default/"+parts[0], []byte(text), 1)
				if err != nil {
					t.Fatal(err)
				}
				round.pods = append(round.pods, e)
			}
			var got, absent []string
			for _, s := range round.strays() {
				name := s.pod.Name
				if s.because != "" {
					name += "!"
				}
				got = append(got, name)
			}
			for node := range round.absent {
				absent = append(absent, node)
			}
			if strings.Join(got, " ") != test.want || strings.Join(absent, " ") != test.after {
				t.Errorf("removed %q and waits for %q, want %q and %q", got, absent, test.want, test.after)
			}
		})
	}
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func TestStateOfNode(t *testing.T) {
	t.Parallel()
	const taint = `"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]},`
	for text, want := range map[string]bool{
		taint + `"status":{}`: true,
		taint + `"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}`: true,
		taint + `"status":{"conditions":[{"type":"Ready","status":"True"}]}`:    false,
		`"spec":{"taints":[{"key":"other","effect":"NoExecute"}]},"status":{}`:  false,
		`"spec":{},"status":{"conditions":[{"type":"Ready","status":"False"}]}`: false,
	} {
		e, err := watchcache.NewEntry("n", []byte(`{"apiVersion":"v1","kind":"Node","metadata":{},`+text+`}`), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := stateOfNode(e).outOfService; got != want {
			t.Errorf("%s: out of service %v, want %v", text, got, want)
		}
	}
}
