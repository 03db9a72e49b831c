package invalid

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var kind = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// TestNewMatchesKubernetes compares answers about up to 20 random errors.
func TestNewMatchesKubernetes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := func() *field.Path {
		return field.NewPath("spec").Child([]string{"a", "b"}[r.IntN(2)]).Index(r.IntN(3))
	}
	for range 2000 {
		var errs field.ErrorList
		for range r.IntN(20) {
			switch r.IntN(8) {
			case 0:
				errs = append(errs, field.Invalid(path(), "x\n\"é", "must be y"))
			case 1:
				errs = append(errs, field.Invalid(path(), map[string]any{"a": int64(1)}, "must be y"))
			case 2:
				errs = append(errs, field.Required(path(), ""))
			case 3:
				errs = append(errs, field.NotSupported(path(), "x", []string{"a", "b"}))
			case 4:
				errs = append(errs, field.Duplicate(path(), int64(5)))
			case 5:
				errs = append(errs, field.TooMany(path(), 5, 3))
			case 6:
				errs = append(errs, field.InternalError(nil, fmt.Errorf("broken")))
			default:
				errs = append(errs, field.Forbidden(path(), "may not be set"))
			}
		}
		if got, want := New(kind, "x", errs), apierrors.NewInvalid(kind, "x", errs); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if len(errs) > 0 && Join(errs).Error() != errs.ToAggregate().Error() {
			t.Fatalf("got %v, want %v", Join(errs), errs.ToAggregate())
		}
	}
	if Join(nil) != nil {
		t.Error("no errors are an error")
	}
}

// TestNewIsBounded makes answers of errors that a client sizes: their number, and the size of a value.
func TestNewIsBounded(t *testing.T) {
	var many field.ErrorList
	for i := range 300_000 {
		many = append(many, field.Required(field.NewPath("spec", "ports").Index(i), ""))
	}
	huge := strings.Repeat("\x00é", 1<<20)
	for name, errs := range map[string]field.ErrorList{
		"many":         many,
		"a long value": {field.Invalid(field.NewPath("a"), huge, "no")},
		"a long value many times": {
			field.Invalid(field.NewPath("a"), huge, "no"), field.Invalid(field.NewPath("b"), []string{huge}, "no"),
			field.Invalid(field.NewPath("c"), huge, huge),
		},
	} {
		status := New(kind, "x", errs).ErrStatus
		size := len(status.Message)
		for _, c := range status.Details.Causes {
			size += len(c.Message) + len(c.Field)
		}
		if size > 3*Most {
			t.Errorf("%s: an answer of %d bytes", name, size)
		}
	}
	status := New(kind, "x", many).ErrStatus
	causes := status.Details.Causes
	if last := causes[len(causes)-1].Message; last != fmt.Sprintf("%d more errors are not listed",
		len(many)-len(causes)+1) || !strings.HasSuffix(status.Message, ", "+last+"]") {
		t.Errorf("got %s", last)
	}
}

// TestReasonOfLongValue refuses values of sizes around the bound, and expects the reason behind the value.
func TestReasonOfLongValue(t *testing.T) {
	for _, size := range []int{mostText - 100, mostText - 1, mostText, mostText + 1, 3 * mostText} {
		for _, value := range []any{
			strings.Repeat("a", size), strings.Repeat("\x00", size), []string{strings.Repeat("é", size)},
		} {
			e := field.Invalid(field.NewPath("a"), value, "must be shorter")
			got, whole := bodyOf(e), e.ErrorBody()
			if len(whole) <= mostText && got != whole {
				t.Errorf("a value of %d bytes: the text differs from Kubernetes'", size)
			}
			if len(got) > mostText+len("...") || !strings.HasPrefix(got, "Invalid value: ") ||
				!strings.HasSuffix(got, ": must be shorter") {
				t.Errorf("a value of %d bytes: %d bytes, %s ... %s", size, len(got), got[:20], got[len(got)-20:])
			}
		}
	}
	e := field.Invalid(field.NewPath("a"), "short", strings.Repeat("r", 3*mostText))
	if got := bodyOf(e); !strings.HasPrefix(got, `Invalid value: "short": rrr`) || len(got) > mostText {
		t.Errorf("a long reason: %d bytes, %s", len(got), got[:40])
	}
}

// TestNewIsLinear compares the memory that answers about 500 and 4,000 errors take altogether.
func TestNewIsLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		var errs field.ErrorList
		for i := range n {
			errs = append(errs, field.Required(field.NewPath("spec", "requirements").Index(i), "must be specified"))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = New(kind, "x", errs)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(500), allocated(4000); many > 16*few {
		t.Errorf("%d bytes for 500 errors, %d for 4,000", few, many)
	}
}
