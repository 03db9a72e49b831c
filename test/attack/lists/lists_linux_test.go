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
	for _, c := range growings(lists) {
		for _, form := range forms {
			const first, most = 1000, 16_000
			before := cost(t, c, first, form)
			for n := 4 * first; n <= most && before > suspicious && before < 2*time.Second; n *= 4 {
				after := cost(t, c, n, form)
				measured++
				worst = max(worst, after)
				if after > time.Second && after > 8*before {
					t.Errorf("%s of %s, %s elements: %d take %s, %d take %s", c.name, c.list.Resource.Kind, form, n/4,
						before, n, after)
				}
				before = after
			}
		}
	}
	t.Logf("%d lists, %d measured again with more elements, at most %s", len(lists), measured, worst)
}

// growing is a list that grows, with the subresource of the update. If also is not nil, that list grows with it.
type growing struct {
	name        string
	list, also  *growth.List
	subresource string
}

// growings returns each list, and the lists of statuses also for an update of the status. With the variable ATTACK the
// latter grow with each list of the spec, too: a check may look up an element of one list in the other.
func growings(lists []*growth.List) (out []growing) {
	only := os.Getenv("ATTACK")
	add := func(g growing) {
		if only == "all" || strings.Contains(g.name, only) {
			out = append(out, g)
		}
	}
	for _, l := range lists {
		add(growing{name: l.Name, list: l})
		if l.Path()[0] != "status" || !l.Version.Status {
			continue
		}
		add(growing{name: l.Name + " of the status", list: l, subresource: "status"})
		for _, spec := range lists {
			if only != "" && spec.Resource == l.Resource && spec.Path()[0] == "spec" && len(spec.Path()) == 2 {
				add(growing{
					name: l.Name + " of the status with " + spec.Name, list: l, also: spec, subresource: "status",
				})
			}
		}
	}
	return out
}

// cost returns the CPU time to create and to update an object with n elements in a list, without the parts of a write
// that do not depend on the kind. For an update of a subresource both objects have the status.
func cost(t *testing.T, c growing, n int, form growth.Form) time.Duration {
	t.Helper()
	l, whole := c.list, c.list.Object(n, form)
	if c.also != nil {
		c.also.Grow(whole, n, form)
	}
	body, err := json.Marshal(whole)
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
		if rules.PrepareCreate != nil && c.subresource == "" { // it removes the status
			rules.PrepareCreate(one, env)
		}
	}
	valid := true
	if rules.Validate != nil {
		valid = len(rules.Validate(ctx, obj)) == 0
	}
	if rules.PrepareUpdate != nil {
		rules.PrepareUpdate(obj, old, c.subresource, env)
	}
	if rules.ValidateUpdate != nil {
		valid = len(rules.ValidateUpdate(ctx, obj, old, c.subresource)) == 0 && valid
	}
	if rules.Warnings != nil && valid {
		rules.Warnings(obj, old, c.subresource)
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
