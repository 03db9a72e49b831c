package cost

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rights lets the attacker and the neighbour do everything. They are not exempt from any limit.
const rights = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"cost"},` +
	`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[` +
	`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + attacker + `"},` +
	`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + neighbour + `"}]}`

// prepare makes the objects that attacks are about.
func prepare(t *testing.T, server *process) {
	t.Helper()
	admin := as(t, server, "")
	definition, err := os.ReadFile("../../../internal/workload/play/testdata/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type object struct{ path, body string }
	objects := []object{
		{definitions, string(definition)},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", rights},
		{definitions, widget},
		{widgets, meta("cost.example.com/v1", "Widget", "", "")},
		{core + "configmaps", meta("v1", "ConfigMap", "", "")},
		{core + "pods", pod(`"schedulingGates":[{"name":"a"}]`)},
		{"/apis/apps/v1/namespaces/default/deployments", workload("apps/v1", "Deployment", `"args":["a"]`)},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
			meta("rbac.authorization.k8s.io/v1", "Role", "", "")},
		{core + "secrets", meta("v1", "Secret", "", "")},
	}
	for _, text := range stages() {
		objects = append(objects, object{"/apis/kwok.x-k8s.io/v1alpha1/stages", text})
	}
	for _, o := range objects {
		code, text := admin.send(t.Context(),
			attack{method: http.MethodPost, path: o.path, contentType: asYAML, body: o.body})
		if code != http.StatusCreated {
			t.Fatalf("create at %s: %d %s", o.path, code, text)
		}
	}
}

// attacks returns all attacks.
func attacks(t *testing.T) []attack {
	size := full
	if text := os.Getenv("ATTACK_SIZE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return slices.Concat(bodies(t, size), expressions(size), inputs(size))
}

// settle waits until the server holds at most 64 MB more than at first, three seconds at the most.
func (p *process) settle(t *testing.T, first int64) {
	t.Helper()
	for range 6 {
		if p.memory(t, "VmRSS") <= first+64<<20 {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// TestQuick sends every tenth attack, and checks memory and answers. It measures no time.
func TestQuick(t *testing.T) {
	server := start(t)
	prepare(t, server)
	mallory := as(t, server, attacker)
	var outcomes []outcome
	for i, a := range attacks(t) {
		if i%10 == 0 {
			outcomes = append(outcomes, server.try(t, mallory, a))
		}
	}
	table, missed := report(outcomes)
	t.Logf("load %s\n%s", load(), table)
	for _, m := range missed {
		t.Error(m)
	}
}

// TestAll sends all attacks that match ATTACK, a part of a family or a name, while a neighbour sends 100 requests a
// second, and checks all bounds. It takes minutes: `make attack` runs it.
func TestAll(t *testing.T) {
	wanted := os.Getenv("ATTACK")
	if wanted == "" {
		t.Skip("ATTACK is not set: make attack sets it")
	}
	server := start(t)
	prepare(t, server)
	mallory := as(t, server, attacker)
	bob := watch(t, server)
	time.Sleep(10 * time.Second) // the neighbour alone
	alone := time.Now()
	first, own := server.memory(t, "VmRSS"), server.memory(t, "RssAnon")

	var outcomes []outcome
	for _, a := range attacks(t) {
		if wanted != "all" && !strings.Contains(a.family+" "+a.name, wanted) {
			continue
		}
		server.settle(t, first)
		o := server.try(t, mallory, a)
		server.leave(t, mallory, &o)
		outcomes = append(outcomes, o)
	}
	end := time.Now()
	time.Sleep(5 * time.Second)
	bob.stop()
	table, missed := report(outcomes)
	t.Logf("%d attacks, load %s\n%s", len(outcomes), load(), table)
	for _, m := range missed {
		t.Error(m)
	}

	n, failed, before := bob.between(alone.Add(-9*time.Second), alone)
	t.Logf("neighbour alone, priority %s: %d requests, %d failed, p99 %s", bob.priority, n, failed, before)
	n, failed, loaded := bob.between(alone, end)
	t.Logf("neighbour beside the attacks: %d requests, %d failed, p99 %s", n, failed, loaded)
	if most := max(3*before, 20*time.Millisecond); loaded > most || failed > 0 {
		t.Errorf("the neighbour's p99 is %s, at most %s wanted; %d requests failed", loaded, most, failed)
	}
	// Pages of the executable that the attacks have used stay mapped, but belong to the page cache.
	last := server.memory(t, "RssAnon")
	t.Logf("the server held %d MB of its own before and %d MB after, and %d MB and %d MB of its executable", own>>20,
		last>>20, (first-own)>>20, (server.memory(t, "VmRSS")-last)>>20)
	if last > own+64<<20 {
		t.Errorf("the server kept %d MB", (last-own)>>20)
	}
}
