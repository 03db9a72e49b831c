package oraclebuiltins

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
)

// roleGates are the feature gates that add to the bootstrap policy, each with the gates that it needs.
var roleGates = [][]featuregate.Feature{
	{features.ClusterTrustBundle}, {features.DRAWorkloadResourceClaims, features.GenericWorkload},
	{features.GenericWorkload}, {features.PodCertificateRequest}, {genericfeatures.StorageVersionAPI},
	{features.StorageVersionMigrator},
}

// defaultRoleGates are the gates among roleGates that are on by default.
func defaultRoleGates() (names []string) {
	for _, gates := range roleGates {
		if utilfeature.DefaultFeatureGate.Enabled(gates[0]) {
			names = append(names, string(gates[0]))
		}
	}
	return names
}

// setRoleGates enables exactly these of roleGates.
func setRoleGates(t *testing.T, on ...featuregate.Feature) {
	t.Helper()
	gates := featuregatetesting.FeatureOverrides{}
	for _, g := range roleGates {
		gates[g[0]] = slices.Contains(on, g[0])
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, gates)
}

// updatePolicy writes the bootstrap policy, and the additions of gates, from Kubernetes' own.
func updatePolicy(t *testing.T) {
	t.Helper()
	lines := func(on ...featuregate.Feature) (all []map[string]any) {
		t.Run("gates", func(t *testing.T) {
			setRoleGates(t, on...)
			all = policyObjects(t)
		})
		return all
	}
	var policy, gated strings.Builder
	base := lines()
	for _, o := range base {
		policy.WriteString(asLine(t, o))
	}
	for _, gates := range roleGates {
		before := base
		if len(gates) > 1 {
			before = lines(gates[1:]...)
		}
		for _, o := range lines(gates...) {
			if add := addition(o, before); add != nil {
				gated.WriteString(asLine(t, map[string]any{"gate": string(gates[0]), "object": add}))
			}
		}
	}
	const dir = "../../internal/feature/authorize/bootstrap/"
	for name, text := range map[string]string{"policy.jsonl": policy.String(), "gates.jsonl": gated.String()} {
		if err := os.WriteFile(dir+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// policyKey orders the objects of a policy by kind, namespace and name.
func policyKey(o map[string]any) string {
	meta := o["metadata"].(map[string]any)
	return fmt.Sprint(o["kind"], " ", meta["namespace"], "/", meta["name"])
}

// addition returns the addition of o to the policy before: the whole object, its additional rules, or nil.
func addition(o map[string]any, before []map[string]any) map[string]any {
	at := slices.IndexFunc(before, func(b map[string]any) bool { return policyKey(b) == policyKey(o) })
	if at < 0 {
		return o
	}
	text := func(v any) string { raw, _ := json.Marshal(v); return string(raw) }
	had := map[string]bool{}
	old, _ := before[at]["rules"].([]any)
	for _, r := range old {
		had[text(r)] = true
	}
	now, _ := o["rules"].([]any)
	more := slices.DeleteFunc(slices.Clone(now), func(r any) bool { return had[text(r)] })
	if len(more) == 0 {
		return nil
	}
	name := o["metadata"].(map[string]any)["name"]
	return map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": map[string]any{"name": name},
		"rules": more}
}

func asLine(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// policyObjects returns Kubernetes' policy in the order of the file.
func policyObjects(t *testing.T) (all []map[string]any) {
	t.Helper()
	p := bootstrap()
	add := func(kind string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		o := map[string]any{}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		o["apiVersion"], o["kind"] = rbacv1.SchemeGroupVersion.String(), kind
		delete(o["metadata"].(map[string]any), "creationTimestamp")
		all = append(all, o)
	}
	for _, r := range p.clusterRoles {
		add("ClusterRole", r)
	}
	for _, b := range p.clusterBindings {
		add("ClusterRoleBinding", b)
	}
	for _, r := range p.roles {
		add("Role", r)
	}
	for _, b := range p.bindings {
		add("RoleBinding", b)
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(policyKey(a), policyKey(b)) })
	return all
}
