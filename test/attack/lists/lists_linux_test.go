package lists

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/testing/growth"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// TestGrowth writes objects with a long list in every place of every kind, and looks for costs that grow with the
// square of its length. It counts the CPU time of its own thread, and calls a cost quadratic only if it is more than a
// second and grows twice as fast as the length. Without the variable ATTACK, which `make attack` sets, it looks at one
// form of elements and only at the most expensive lists again; a text other than "all" selects lists by their names.
func TestGrowth(t *testing.T) {
	forms, suspicious := []growth.Form{growth.Distinct}, 50*time.Millisecond
	if os.Getenv("ATTACK") != "" {
		forms, suspicious = growth.Forms, 8*time.Millisecond
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lists := growth.Lists(t, "../../oracle-builtins/testdata/objects.yaml", kinds.Resources())
	if len(lists) < 290 {
		t.Errorf("only %d lists were found", len(lists))
	}
	measured, worst := 0, time.Duration(0)
	for _, l := range lists {
		if only := os.Getenv("ATTACK"); only != "all" && !strings.Contains(l.Name, only) {
			continue
		}
		for _, form := range forms {
			const first, most = 1000, 16_000
			before := cost(t, l, first, form)
			for n := 4 * first; n <= most && before > suspicious && before < 2*time.Second; n *= 4 {
				after := cost(t, l, n, form)
				measured++
				worst = max(worst, after)
				if after > time.Second && after > 8*before {
					t.Errorf("%s of %s, %s elements: %d take %s, %d take %s", l.Name, l.Resource.Kind, form, n/4, before,
						n, after)
				}
				before = after
			}
		}
	}
	t.Logf("%d lists, %d measured again with more elements, at most %s", len(lists), measured, worst)
}

// cost returns the CPU time to create and to update an object with n elements in a list, without the parts of a write
// that do not depend on the kind.
func cost(t *testing.T, l *growth.List, n int, form growth.Form) time.Duration {
	t.Helper()
	body, err := json.Marshal(l.Object(n, form))
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: l.Resource.Group, Version: l.Version.Name, Kind: l.Resource.Kind}
	ctx := codec.WithCBOR(context.Background())
	read := func() map[string]any {
		obj, _, err := decode.Read(ctx, decode.Body{Data: body, Type: codec.JSON}, true, kind, l.Version.New)
		if err != nil {
			return nil
		}
		return obj
	}
	began := used(t)
	rules := l.Resource.StrategyFor(l.Version)
	obj, old := read(), read()
	if obj == nil || rules == nil {
		return used(t) - began
	}
	env := catalog.Env{Now: time.Unix(1_800_000_000, 0)}
	for _, one := range []map[string]any{obj, old} {
		if rules.Decode != nil {
			if _, err := rules.Decode(one); err != nil {
				return used(t) - began
			}
		}
		if rules.Default != nil {
			rules.Default(one)
		}
		if rules.PrepareCreate != nil {
			rules.PrepareCreate(one, env)
		}
	}
	valid := true
	if rules.Validate != nil {
		valid = len(rules.Validate(ctx, obj)) == 0
	}
	if rules.PrepareUpdate != nil {
		rules.PrepareUpdate(obj, old, "", env)
	}
	if rules.ValidateUpdate != nil {
		rules.ValidateUpdate(ctx, obj, old, "")
	}
	if rules.Warnings != nil && valid {
		rules.Warnings(obj, old, "")
	}
	return used(t) - began
}

// used returns the CPU time of the calling thread.
func used(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
