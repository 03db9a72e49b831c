package oraclebuiltins

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kubeabac "k8s.io/kubernetes/pkg/auth/authorizer/abac"

	"github.com/bowsprit/bowsprit/internal/auth/abac"
	"github.com/bowsprit/bowsprit/internal/request"
)

// TestABAC reads random files of policies with Kubernetes' code and ours, and compares both decisions for the same
// random requests.
func TestABAC(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 36))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	line := func() string {
		fields := map[string]any{}
		for name, value := range map[string]any{
			"user": pick("bob", "eve", "*"), "group": pick("g", "system:authenticated", "*"),
			"readonly": rng.IntN(2) == 0, "resource": pick("pods", "nodes", "*"), "namespace": pick("n", "m", "*"),
		} {
			if rng.IntN(3) == 0 {
				fields[name] = value
			}
		}
		out := fields
		const group = "abac.authorization.kubernetes.io/"
		switch rng.IntN(4) {
		case 0, 1:
			if rng.IntN(2) == 0 {
				fields["apiGroup"] = pick("apps", "*")
			}
			if rng.IntN(2) == 0 {
				fields["nonResourcePath"] = pick("/a/*", "/a", "*")
			}
			out = map[string]any{"apiVersion": group + "v1beta1", "kind": "Policy", "spec": fields}
		case 2:
			fields["apiVersion"], fields["kind"] = group+"v0", "Policy"
		}
		if rng.IntN(100) == 0 {
			out = map[string]any{"apiVersion": group + pick("v0", "v7"), "kind": pick("Policy", "Other"), "user": 7}
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	path := filepath.Join(t.TempDir(), "policies")
	var read, refused, allowed int
	for range 300 {
		text := "# a file\n\n"
		for range rng.IntN(8) + 1 {
			text += line() + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ours, err := abac.Load(path, slog.New(slog.DiscardHandler))
		theirs, theirErr := kubeabac.NewFromFile(path)
		if (err == nil) != (theirErr == nil) {
			t.Fatalf("%s\nours: %v\ntheirs: %v", text, err, theirErr)
		}
		if err != nil {
			refused++
			continue
		}
		read++
		for range 200 {
			u := &user.DefaultInfo{Name: pick("bob", "eve", "tim")}
			if rng.IntN(2) == 0 {
				u.Groups = []string{pick("g", "system:authenticated"), "h"}
			}
			info := &request.Info{
				Verb: pick("get", "list", "watch", "create", "post"), IsResource: rng.IntN(3) > 0,
				Path: pick("/a", "/a/b", "/c"), Namespace: pick("n", "m", ""),
				Resource: pick("pods", "nodes"), Group: pick("", "apps"),
			}
			d, err := ours.Authorize(t.Context(), u, info)
			decision, reason, theirErr := theirs.Authorize(t.Context(), asRecord(u, info))
			if d.Allowed() != (decision == authorizer.DecisionAllow) || d.Reason != reason || err != nil ||
				theirErr != nil {
				t.Fatalf("%s%v %+v: %+v %v, want %v %q %v", text, u, info, d, err, decision, reason, theirErr)
			}
			if d.Allowed() {
				allowed++
			}
			rules, _ := ours.Rules(t.Context(), u, info.Namespace)
			resources, others, incomplete, _ := theirs.RulesFor(t.Context(), u, info.Namespace)
			got, want := "", ""
			for _, r := range rules.Resources {
				got += fmt.Sprintln(r.Verbs, r.APIGroups, r.Resources)
			}
			for _, r := range rules.NonResources {
				got += fmt.Sprintln(r.Verbs, r.NonResourceURLs)
			}
			for _, r := range resources {
				want += fmt.Sprintln(r.GetVerbs(), r.GetAPIGroups(), r.GetResources())
			}
			for _, r := range others {
				want += fmt.Sprintln(r.GetVerbs(), r.GetNonResourceURLs())
			}
			if got != want || rules.Incomplete != incomplete {
				t.Fatalf("%srules of %v:\n%swant\n%s", text, u, got, want)
			}
		}
	}
	if read < 100 || refused < 3 || allowed < 1000 {
		t.Errorf("read %d files, refused %d, allowed %d: the cases are wrong", read, refused, allowed)
	}
}
