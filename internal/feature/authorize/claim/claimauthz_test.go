package claim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// granted are permissions: "verb subresource namespace/name".
type granted []string

func (g granted) Authorize(_ context.Context, _ user.Info, info *request.Info) (authz.Decision, error) {
	key := info.Verb + " " + info.Subresource + " " + info.Namespace + "/" + info.Name
	if slices.Contains(g, key) && info.Group == "resource.k8s.io" && info.Resource == "resourceclaims" {
		return authz.Decision{Verdict: authz.Allow}, nil
	}
	return authz.Decision{Reason: "no"}, nil
}

// status returns a claim with a status.
func status(t *testing.T, text string) object.Object {
	t.Helper()
	obj := object.Object{}
	if err := json.Unmarshal([]byte(`{"status":{`+text+`}}`), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestLimit(t *testing.T) {
	t.Parallel()
	const (
		allocation = `"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"x"}]},` +
			`"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}`
		reserved = `,"reservedFor":[{"resource":"pods","name":"a","uid":"1"}]`
		device   = `,"devices":[{"driver":"d","pool":"p","device":"x"}]`
		changed  = `,"devices":[{"driver":"d","pool":"p","device":"x","data":{"a":1}}]`
		both     = `,"devices":[{"driver":"e","pool":"p","device":"x"},{"driver":"d","pool":"p","device":"x"}]`
		refused  = `status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: User "bob" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope: no`
		arbi     = `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "d" is forbidden: User "bob" cannot arbitrary-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "ns": no`
	)
	bob := &user.DefaultInfo{Name: "bob"}
	agent := func(node ...string) user.Info {
		return &user.DefaultInfo{Name: "system:serviceaccount:a:b",
			Extra: map[string][]string{"authentication.kubernetes.io/node-name": node}}
	}
	for _, tc := range []struct {
		name     string
		granted  granted
		user     user.Info
		was, now string
		want     []string // parts of the errors, in order
	}{
		{"nothing changes", nil, bob, allocation + reserved + device, allocation + reserved + device, nil},
		{"allocation", nil, bob, ``, allocation, []string{refused}},
		{"reservation", nil, bob, allocation, allocation + reserved, []string{refused}},
		{"deallocation", nil, bob, allocation + device, ``, []string{refused}},
		{"binder", granted{"update binding /"}, bob, allocation, allocation + reserved, nil},
		{"binder of one namespace", granted{"update binding ns/c"}, bob, allocation, allocation + reserved,
			[]string{refused}},
		{"patch", granted{"patch binding /"}, bob, allocation, allocation + reserved, []string{refused}},
		{"new device", nil, bob, allocation, allocation + device, []string{arbi}},
		{"changed device", nil, bob, allocation + device, allocation + changed, []string{arbi}},
		{"removed device", nil, bob, allocation + device, allocation, []string{arbi}},
		{"driver", granted{"arbitrary-node:update driver ns/d"}, bob, allocation, allocation + device, nil},
		{"another driver", granted{"arbitrary-node:update driver ns/e"}, bob, allocation, allocation + both,
			[]string{arbi}},
		{"two drivers", nil, bob, allocation, allocation + both, []string{`"d" is forbidden`, `"e" is forbidden`}},
		{"all", nil, bob, ``, allocation + reserved + device, []string{refused, arbi}},
		{"on the node", granted{"associated-node:update driver ns/d"}, agent("n1"), allocation, allocation + device, nil},
		{"on another node", granted{"associated-node:update driver ns/d"}, agent("n2"), allocation, allocation + device,
			[]string{`verb="[arbitrary-node:update]"`}},
		{"on two nodes", granted{"associated-node:update driver ns/d"}, agent("n1", "n2"), allocation, allocation + device,
			[]string{`verb="[arbitrary-node:update]"`}},
		{"on the node, refused", nil, agent("n1"), allocation, allocation + device,
			[]string{`verb="[associated-node:update arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "d" is forbidden: User "system:serviceaccount:a:b" cannot associated-node:update`}},
		{"the server itself", nil, nil, ``, allocation, nil},
	} {
		c := &verb.Call{
			Version: &catalog.Version{Name: "v1"}, Verb: "update", Namespace: "ns", Name: "c", User: tc.user,
		}
		errs := Limit(tc.granted)(t.Context(), c, status(t, tc.now), status(t, tc.was))
		if len(errs) != len(tc.want) {
			t.Errorf("%s: %v", tc.name, errs)
			continue
		}
		for i, want := range tc.want {
			if got := errs[i].Error(); !strings.Contains(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", tc.name, got, want)
			}
		}
	}
}
