package scheduler

import "testing"

// TestLimits checks that a node gets no more volumes of a driver than its limit; already attached volumes and volumes
// of other drivers do not count.
func TestLimits(t *testing.T) {
	t.Parallel()
	type all = []attachment
	on := map[string]attachment{"x": {"d", "1"}, "y": {"d", "2"}, "z": {"e", "1"}}
	find := func(_, claim string) (attachment, bool) {
		a, ok := on[claim]
		return a, ok
	}
	for _, c := range []struct {
		name     string
		claims   []string // of a pod on the node
		wanted   all
		attached all
		want     bool
	}{
		{"one", nil, all{{"d", "3"}}, nil, false},
		{"one more", []string{"x"}, all{{"d", "3"}}, nil, false},
		{"one too many", []string{"x", "y"}, all{{"d", "3"}}, nil, true},
		{"the same", []string{"x", "y"}, all{{"d", "2"}}, nil, false},
		{"of another driver", []string{"x", "z"}, all{{"d", "3"}}, nil, false},
		{"of a driver without limit", []string{"x", "y"}, all{{"e", "3"}}, nil, false},
		{"too many at once", []string{"x"}, all{{"d", "3"}, {"d", "4"}}, nil, true},
		{"twice the same", []string{"x"}, all{{"d", "3"}, {"d", "3"}}, nil, false},
		{"attached", []string{"x"}, all{{"d", "3"}}, all{{"d", "4"}}, true},
		{"attached for a pod", []string{"x"}, all{{"d", "3"}}, all{{"d", "1"}}, false},
		{"no such claim", []string{"gone"}, all{{"d", "3"}, {"d", "4"}}, nil, false},
	} {
		m := cluster3()
		p := pod("p", "1")
		p.claims = c.claims
		m.add(p, "a")
		l := &limits{
			wanted: c.wanted, of: map[string]map[string]int{"a": {"d": 2}},
			attached: map[string][]attachment{"a": c.attached}, find: find,
		}
		if got := l.exceeded(m.nodes["a"]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if l.exceeded(m.nodes["b"]) {
			t.Errorf("%s: a node without limits", c.name)
		}
	}
}
