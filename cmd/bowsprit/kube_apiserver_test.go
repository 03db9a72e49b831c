package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// TestPluginsOffByDefault checks that a plugin that kube-apiserver has off is off unless a flag names it.
func TestPluginsOffByDefault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ enabled, disabled, want []string }{
		{want: []string{"NodeRestriction"}},
		{enabled: []string{"NodeRestriction"}},
		{disabled: []string{"NodeRestriction"}, want: []string{"NodeRestriction"}},
		{enabled: []string{"PodSecurity"}, disabled: []string{"ServiceAccount"},
			want: []string{"NodeRestriction", "ServiceAccount"}},
	} {
		var config bowsprit.Config
		flags := kubeFlags{enabledPlugins: test.enabled, disabledPlugins: test.disabled}
		if unused, err := flags.applyTo(&config); err != nil || len(unused) > 0 ||
			!slices.Equal(config.Admission.Disabled, test.want) {
			t.Errorf("on %q, off %q: %q, %q, %v", test.enabled, test.disabled, config.Admission.Disabled, unused, err)
		}
	}
}

// TestKubeFlags checks that exactly the flags of kube-apiserver are declared, with their types and defaults.
func TestKubeFlags(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	bindKubeFlags(flags, &bowsprit.Config{}, &kubeFlags{})
	// differ lists the flags with other defaults (the directory for kube-apiserver's certificates) or another --help.
	differ := []string{"cert-dir", "v", "version", "etcd-servers", "disable-admission-plugins",
		"enable-admission-plugins", "api-audiences", "service-account-issuer", "service-account-key-file",
		"strict-transport-security-directives", "authorization-mode", "tls-cipher-suites", "tls-sni-cert-key", "cors-allowed-origins",
		"requestheader-allowed-names", "requestheader-extra-headers-prefix", "requestheader-group-headers",
		"requestheader-uid-headers", "requestheader-username-headers", "emulated-version",
		"min-compatibility-version", "allow-metric-labels", "disabled-metrics", "feature-gates"}
	var names []string
	for _, known := range readKubeFlags() {
		names = append(names, known.name)
		flag := flags.Lookup(known.name)
		if flag == nil {
			t.Errorf("--%s is not declared", known.name)
			continue
		}
		if slices.Contains(differ, known.name) {
			continue
		}
		if flag.Value.Type() != known.kind && !(known.kind == "ip" && flag.Value.Type() == "string") ||
			flag.DefValue != known.byDefault {
			t.Errorf("--%s is of type %s, default %q; want %s, %q", known.name, flag.Value.Type(), flag.DefValue,
				known.kind, known.byDefault)
		}
	}
	if !slices.IsSorted(names) || len(names) != 174 {
		t.Errorf("%d flags, or not in order", len(names))
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(names, f.Name) {
			t.Errorf("--%s is no flag of kube-apiserver", f.Name)
		}
	})
}

// TestUnusedValues checks that the values of flags without effect are checked by their types.
func TestUnusedValues(t *testing.T) {
	t.Parallel()
	tests := []struct{ kind, good, bad string }{
		{"bool", "false", "maybe"},
		{"int", "-1", "many"},
		{"int64", "0x10", "1.5"},
		{"uint", "10250", "-1"},
		{"float32", "0.5", "half"},
		{"duration", "1h30m", "90"},
		{"ip", "::1", "localhost"},
		{"mapStringString", "api/all=true,apps/v1=false", "api/all"},
	}
	for _, test := range tests {
		v := &unusedValue{kind: test.kind}
		if err := v.Set(test.good); err != nil || v.String() != test.good {
			t.Errorf("%s %q: %v", test.kind, test.good, err)
		}
		if err := v.Set(test.bad); err == nil || v.String() != test.good {
			t.Errorf("%s %q is accepted", test.kind, test.bad)
		}
	}
	if err := (&unusedValue{kind: "string"}).Set("anything"); err != nil {
		t.Error(err)
	}
}

func TestKubeAPIServerErrors(t *testing.T) {
	t.Parallel()
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "apiserver.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"no etcd", nil, []string{"--etcd-servers must be specified", "bowsprit serve"}},
		{"flag that was removed", []string{"--insecure-port=0"}, []string{"unknown flag: --insecure-port"}},
		{"argument", []string{"now"}, []string{`does not take any arguments, got ["now"]`}},
		{"value of a flag without effect", []string{"--audit-log-maxage=old"},
			[]string{`--audit-log-maxage "old" is not a value of type int`}},
		{"unknown plugin", []string{"--etcd-servers=http://127.0.0.1:1", "--enable-admission-plugins=Nope"},
			[]string{`--enable-admission-plugins: plugin "Nope" is unknown`}},
		{"plugin on and off",
			[]string{"--etcd-servers=http://127.0.0.1:1", "--enable-admission-plugins=PodSecurity",
				"--disable-admission-plugins=PodSecurity"},
			[]string{`"PodSecurity" is in --enable-admission-plugins and in --disable-admission-plugins`}},
		{"unknown mode", []string{"--etcd-servers=http://127.0.0.1:1", "--authorization-mode=RBAC,Never"},
			[]string{`--authorization-mode "Never" is not a valid mode`, "AlwaysAllow"}},
		{"modes and a file of modes",
			[]string{"--etcd-servers=http://127.0.0.1:1", "--authorization-mode=RBAC", "--authorization-config=a.yaml"},
			[]string{"--authorization-config can not be specified when --authorization-mode"}},
		{"mode twice", []string{"--etcd-servers=http://127.0.0.1:1", "--authorization-mode=RBAC,RBAC"},
			[]string{"has mode specified more than once"}},
		{"unknown version", []string{"--etcd-servers=http://127.0.0.1:1", "--runtime-config=apps/v9=true"},
			[]string{"--runtime-config: group version apps/v9 that has not been registered"}},
		{"half a certificate", []string{"--etcd-servers=http://127.0.0.1:1", "--cert-dir=" + half},
			[]string{half, "one of apiserver.crt and apiserver.key"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fails(t, exit.Failure, test.want, append([]string{"kube-apiserver"}, test.args...)...)
		})
	}
}

// TestAssets starts both programs like envtest: by the names of their links, with envtest's flags, and two servers on
// one etcd.
func TestAssets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // a second time replaces the links
		if out := succeeds(t, "envtest", dir); out != "export KUBEBUILDER_ASSETS="+dir+"\n" {
			t.Errorf("printed %q", out)
		}
	}

	etcd := link(t, dir, "etcd", "--data-dir="+filepath.Join(dir, "data"), "--unsafe-no-fsync=true",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--listen-client-urls=http://127.0.0.1:0", "--advertise-client-urls=http://127.0.0.1:0")
	address := etcd.find(`"serving client traffic insecurely.*"address":"([^"]+)"`)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("secret,someone,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var servers []string
	for range 2 {
		server := link(t, dir, "kube-apiserver", "--etcd-servers=http://"+address, "--secure-port=0",
			"--bind-address=127.0.0.1", "--cert-dir="+dir,
			"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--allow-privileged=true",
			"--disable-admission-plugins=ServiceAccount",
			"--service-cluster-ip-range=10.0.0.0/24", "--advertise-address=127.0.0.1",
			"--service-node-port-range=30000-30100", "--service_account_issuer=https://127.0.0.1/", "-v=1")
		if unused := server.find(`flags without effect" flags="?\[(.*)\]`); !strings.Contains(unused,
			"--allow-privileged") || strings.Contains(unused, "--cert-dir") {
			t.Errorf("flags without effect: %s", unused)
		}
		servers = append(servers, server.find(`msg=ready url=(\S+)`))
	}
	for _, server := range servers { // the first has made its certificate, the other has found it
		trust := x509.NewCertPool()
		if certificate, err := os.ReadFile(filepath.Join(dir, "apiserver.crt")); err != nil ||
			!trust.AppendCertsFromPEM(certificate) {
			t.Fatalf("no certificate in --cert-dir: %v", err)
		}
		conn, err := tls.Dial("tcp", strings.TrimPrefix(server, "https://"), &tls.Config{RootCAs: trust})
		if err != nil {
			t.Fatalf("with the certificate in --cert-dir: %v", err)
		}
		conn.Close()
	}
	if body := call(t, http.MethodGet, servers[0]+"/healthz", ""); body != "ok" {
		t.Errorf("/healthz: %s", body)
	}
	call(t, http.MethodPost, servers[0]+"/api/v1/namespaces",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shared"}}`)
	if body := call(t, http.MethodGet, servers[1]+"/api/v1/namespaces/shared", ""); !strings.Contains(body,
		`"name":"shared"`) {
		t.Errorf("on the other server: %s", body)
	}
	if body := call(t, http.MethodGet, servers[1]+"/api/v1/namespaces/default/services/kubernetes",
		""); !strings.Contains(body, `"clusterIP":"10.0.0.1"`) {
		t.Errorf("the service: %s", body)
	}
	// As with a lone kube-apiserver, no controller empties a namespace.
	call(t, http.MethodDelete, servers[0]+"/api/v1/namespaces/shared", "")
	call(t, http.MethodGet, servers[1]+"/api/v1/namespaces/shared", "")
}

func TestAssetsRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "etcd")
	if err := os.WriteFile(file, []byte("another etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	fails(t, exit.Failure, []string{file + " exists and is not a link"}, "envtest", dir)
	fails(t, exit.Misuse, []string{"takes one directory, but got 0 arguments"}, "envtest")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAssetsOfTemporaryProgram checks that the assets contain a copy of a program built by "go run", which removes the
// original afterwards.
func TestAssetsOfTemporaryProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "go-build1", "b001", "exe", "bowsprit")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := fillAssets(dir, program); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	stat, err := os.Stat(filepath.Join(dir, "kubectl"))
	if err != nil || stat.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v", stat, err)
	}
}

// linked is a program that runs under one of the names of assets.
type linked struct {
	t   *testing.T
	log *bufio.Scanner
}

// link starts a program under the name of an asset. The end of the test interrupts the program, which must end with
// code 0.
func link(t *testing.T, dir, name string, args ...string) linked {
	t.Helper()
	return linkWith(t, nil, dir, name, args...)
}

// linkWith is link with additional environment variables.
func linkWith(t *testing.T, variables []string, dir, name string, args ...string) linked {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, variables...)
	cmd.Path, cmd.Args[0] = filepath.Join(dir, name), filepath.Join(dir, name)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	log := bufio.NewScanner(reader)
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		for log.Scan() {
		}
		err := cmd.Wait()
		// After its shutdown etcd sends the signal to itself again, and so ends.
		if err != nil && (name != "etcd" || err.Error() != "signal: interrupt") {
			t.Errorf("%s: %v", name, err)
		}
		reader.Close()
	})
	return linked{t, log}
}

// find reads the log up to a line that matches, and returns the group.
func (l linked) find(pattern string) string {
	l.t.Helper()
	expression := regexp.MustCompile(pattern)
	for l.log.Scan() {
		if found := expression.FindStringSubmatch(l.log.Text()); found != nil {
			return found[1]
		}
	}
	l.t.Fatalf("no %s in the log", pattern)
	return ""
}

// call sends a request as the user of the token file and returns the body of the answer, which must be a success.
func call(t *testing.T, method, url, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer secret")
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Errorf("%s %s: %s %v\n%s", method, url, answer.Status, err, content)
	}
	return string(content)
}
