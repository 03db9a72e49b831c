package escalation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// TestLacking compares the permissions that random rules lack with the library's.
func TestLacking(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func(n int, of ...string) (out []string) {
		for range random.IntN(n + 1) {
			out = append(out, of[random.IntN(len(of))])
		}
		return out
	}
	rules := func() (out []rbacv1.PolicyRule) {
		for range random.IntN(4) {
			out = append(out, rbacv1.PolicyRule{
				Verbs: some(3, "get", "list", "*"), APIGroups: some(2, "", "a", "*"),
				Resources:     some(3, "pods", "pods/log", "*", "*/log", "secrets"),
				ResourceNames: some(1, "x", "y"), NonResourceURLs: some(1, "/x", "/x/*", "*"),
			})
		}
		return out
	}
	for range 2000 {
		held, wanted := rules(), rules()
		_, want := validation.Covers(held, wanted)
		got, err := lacking(t.Context(), held, wanted)
		if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%v of %v: got %v, %v, want %v", held, wanted, got, err, want)
		}
	}
}

// TestManyCombinations checks rules whose combinations would take gigabytes.
func TestManyCombinations(t *testing.T) {
	t.Parallel()
	many := func(n int, prefix string) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprint(prefix, i))
		}
		return strings.Join(list, ",")
	}
	c, ann := checker(), Request{User: &user.DefaultInfo{Name: "ann"}, Resource: "roles", Namespace: "n"}
	for name, r := range map[string]rbacv1.PolicyRule{
		"groups":    rule(many(900, "v"), many(900, "g"), many(900, "r")),
		"names":     rule(many(2000, "v"), "", "pods", strings.Split(many(20_000, "n"), ",")...),
		"resources": rule(many(20, "v"), "", many(100_000, "r"), strings.Split(many(20, "n"), ",")...),
		"paths": {Verbs: strings.Split(many(4000, "v"), ","),
			NonResourceURLs: strings.Split(many(40_000, "/p"), ",")},
	} {
		err := c.Role(t.Context(), ann, "x", []rbacv1.PolicyRule{r}, false)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "divide them into several roles") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	// A rule of as many as 90,000 combinations is compared.
	err := c.Role(t.Context(), ann, "x", []rbacv1.PolicyRule{rule(many(30, "v"), many(30, "g"), many(100, "r"))}, false)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "v29") {
		t.Errorf("90,000 combinations: %.200v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.Role(gone, ann, "x", []rbacv1.PolicyRule{rule("get", "", "secrets")}, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
}
