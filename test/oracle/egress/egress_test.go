// Package egress compares the errors for wrong EgressSelectorConfigurations with kube-apiserver's own code.
package egress

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/egressselector"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

// configurations returns the number of random configurations; EGRESS_CONFIGURATIONS overrides it.
func configurations(t *testing.T) int {
	text := os.Getenv("EGRESS_CONFIGURATIONS")
	if text == "" {
		return 3000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestConfigurations has both read the same files, and find the same faults in them.
func TestConfigurations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "egress.yaml")
	there := filepath.Join(t.TempDir(), "there.pem")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	good := 0
	for range configurations(t) {
		text := configuration(random, there)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, got := theirs(file), ""
		if _, err := egress.Read(file); err != nil {
			got = err.Error()
		} else {
			good++
		}
		if got != want {
			t.Errorf("seed %d:\n%s\nwe say   %s\nkube says %s", seed, text, got, want)
		}
	}
	if good == 0 {
		t.Error("no configuration was right: nothing is compared but errors")
	}
	_, err := egress.Read(file + "x")
	if want := theirs(file + "x"); err == nil || err.Error() != want {
		t.Errorf("a file that is not there: %v, want %s", err, want)
	}
}

// theirs returns the error of kube-apiserver's options for a file.
func theirs(file string) string {
	c, err := egressselector.ReadEgressSelectorConfiguration(file)
	if err != nil {
		return fmt.Sprintf("failed to read egress selector config: %v", err)
	}
	if errs := egressselector.ValidateEgressSelectorConfiguration(c); len(errs) > 0 {
		return fmt.Sprintf("failed to validate egress selector configuration: %v", errs.ToAggregate())
	}
	return ""
}

// configuration returns a configuration that may be right.
func configuration(r *rand.Rand, there string) string {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	rarely := func(wrong, usual string) string {
		if r.IntN(12) == 0 {
			return wrong
		}
		return usual
	}
	file := func() string { return one(there, there, there+".missing", `""`) }
	transport := func() string {
		var parts []string
		if r.IntN(2) == 0 {
			parts = append(parts, "uds: {udsName: "+rarely(`""`, "/run/k.socket")+"}")
		}
		if r.IntN(3) == 0 {
			tls := ""
			if r.IntN(2) == 0 {
				tls = fmt.Sprintf(", tlsConfig: {caBundle: %s, clientCert: %s, clientKey: %s, tlsServerName: a}", file(),
					file(), file())
			}
			parts = append(parts, "tcp: {url: "+one("http://a:1", "https://a:1", "ftp://a", `""`)+tls+"}")
		}
		return one("", "transport: {"+strings.Join(parts, ", ")+"}", "transport: {"+strings.Join(parts, ", ")+"}")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n",
		rarely(one("apiserver.config.k8s.io/v1", "v1", "apiserver.k8s.io/v2"),
			one("apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1")),
		rarely(one("Egress", "AdmissionConfiguration"), "EgressSelectorConfiguration"))
	b.WriteString("egressSelections:\n")
	for range r.IntN(4) {
		fmt.Fprintf(&b, "- name: %s\n  connection: {proxyProtocol: %s, %s}\n",
			one("cluster", "Cluster", "controlplane", "master", "Master", "etcd", rarely("nodes", "etcd")),
			rarely(one("grpc", `""`), one("GRPC", "HTTPConnect", "Direct", "Direct")),
			rarely("colour: red", transport()))
	}
	return b.String()
}
