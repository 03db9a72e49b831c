package request

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300)
	var many, manyWant []string
	for i := range 30 {
		text := fmt.Sprintf("%02d", i) + long
		many = append(many, text)
		// 13 texts of 302 runes fit into 4096, the 14th does not: 14 are replayed cut, then more until the total is
		// reached.
		if i < 16 {
			manyWant = append(manyWant, `299 - "`+string([]rune(text)[:256])+`"`)
		}
	}
	for _, tc := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{"none", nil, nil},
		{"empty text", []string{""}, nil},
		{"two", []string{"a", `say "b"`}, []string{`299 - "a"`, `299 - "say \"b\""`}},
		{"repeated", []string{"a", "b", "a"}, []string{`299 - "a"`, `299 - "b"`}},
		{"not a header", []string{"a\nb", "c"}, []string{`299 - "c"`}},
		{"long but alone", []string{long}, []string{`299 - "` + long + `"`}},
		{"too many", many, manyWant},
	} {
		ctx := NewContext(context.Background(), &Scope{})
		for _, text := range tc.texts {
			Warn(ctx, text)
		}
		if got := ScopeOf(ctx).Warnings(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %d headers %q, want %d %q", tc.name, len(got), got, len(tc.want), tc.want)
		}
	}
}

func TestWarnOutsideOfRequest(t *testing.T) {
	t.Parallel()
	Warn(context.Background(), "lost")
	ctx, cancel := context.WithCancel(NewContext(context.Background(), &Scope{AuditID: "a"}))
	defer cancel()
	if s := ScopeOf(ctx); s == nil || s.AuditID != "a" {
		t.Errorf("scope %+v", s)
	}
}
