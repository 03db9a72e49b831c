package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// succeeds runs a command, which must end with code 0, and returns its output.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	cmd := command(t, args...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, log.String())
	}
	return out.String()
}

// TestSimulatedAssets starts a directory of "envtest --simulate" like envtest, and then a plain one with the variable.
func TestSimulatedAssets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, flag, variable, from string }{
		{"flag", "--simulate=nodes=2", "", assetSettings},
		{"variable", "", "BOWSPRIT_SIMULATE=nodes=2", "BOWSPRIT_SIMULATE"},
		{"both", "--simulate=nodes=1", "BOWSPRIT_SIMULATE=nodes=2", "BOWSPRIT_SIMULATE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"envtest", dir}
			if test.flag != "" {
				args = append(args, test.flag)
			}
			succeeds(t, args...)
			simulated(t, dir, test.variable, test.from)
		})
	}
}

// simulated checks that the server in dir runs controllers and simulates two nodes.
func simulated(t *testing.T, dir, variable, from string) {
	t.Helper()
	etcd := link(t, dir, "etcd", "--data-dir="+filepath.Join(dir, "data"), "--unsafe-no-fsync=true",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--listen-client-urls=http://127.0.0.1:0", "--advertise-client-urls=http://127.0.0.1:0")
	address := etcd.find(`"serving client traffic insecurely.*"address":"([^"]+)"`)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("secret,someone,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := linkWith(t, []string{variable}, dir, "kube-apiserver", "--etcd-servers=http://"+address,
		"--secure-port=0", "--bind-address=127.0.0.1", "--cert-dir="+dir, "--token-auth-file="+tokens,
		"--authorization-mode=RBAC", "--allow-privileged=true", "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24", "--advertise-address=127.0.0.1")
	if found := server.find(`workloads are simulated" setting=(\S+)`); filepath.Base(found) != from {
		t.Errorf("the setting comes from %s, want %s", found, from)
	}
	url := server.find(`msg=ready url=(\S+)`)
	kubectl := func(args ...string) string {
		t.Helper()
		cmd := command(t, args...)
		cmd.Path, cmd.Args[0] = filepath.Join(dir, "kubectl"), filepath.Join(dir, "kubectl")
		cmd.Args = append(cmd.Args, "--server="+url, "--token=secret", "--insecure-skip-tls-verify")
		var out, log strings.Builder // kubectl with the race detector logs that
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, log.String())
		}
		return out.String()
	}
	if nodes := kubectl("get", "nodes", "-o", "name"); nodes != "node/node-0\nnode/node-1\n" {
		t.Errorf("nodes: %s", nodes)
	}
	kubectl("create", "namespace", "team")
	kubectl("create", "deployment", "web", "--image=web", "--replicas=2", "--namespace=team")
	kubectl("wait", "deployment", "web", "--for=condition=Available", "--namespace=team", "--timeout=5m")
	kubectl("delete", "deployment", "web", "--namespace=team") // in the background
	kubectl("wait", "pods", "--all", "--for=delete", "--namespace=team", "--timeout=5m")
	kubectl("delete", "namespace", "team", "--timeout=5m") // waits
}

// TestAssetSettings checks that each run of "envtest" leaves exactly the settings of its command line.
func TestAssetSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{"--simulate=nodes=3,zones=3"}, map[string]string{"nodes": "3", "zones": "3"}},
		{[]string{"--simulate=name=worker-%d", "--simulate=cpu=2"}, map[string]string{"name": "worker-%d", "cpu": "2"}},
		{nil, nil},
	} {
		succeeds(t, append([]string{"envtest", dir}, test.args...)...)
		var config bowsprit.Config
		config.Controllers.Enabled = []string{"-*"}
		if _, err := simulateAsAsset(&config, filepath.Join(dir, "kube-apiserver"), nil); err != nil {
			t.Fatal(err)
		}
		got := config.Workloads.Simulate
		same := len(got) == len(test.want)
		for key, value := range test.want {
			same = same && got[key] == value
		}
		if controllers := len(config.Controllers.Enabled) == 0; !same || controllers != (test.want != nil) {
			t.Errorf("%q: %v, controllers %v; want %v", test.args, got, controllers, test.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, assetSettings)); err == nil {
		t.Error("the last run has left the settings of an earlier one")
	}
}

// TestAssetSettingsOfOthers checks that the setting applies to an installed kube-apiserver only.
func TestAssetSettingsOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	succeeds(t, "envtest", dir, "--simulate=nodes=3")
	environment := []string{"BOWSPRIT_SIMULATE=nodes=3", "BOWSPRIT_SECURE_PORT=1"}
	for _, program := range []string{"bowsprit", filepath.Join(dir, "bowsprit"), filepath.Join(dir, "etcd")} {
		config := bowsprit.Config{Controllers: bowsprit.ControllersConfig{Enabled: []string{"-*"}}}
		from, err := simulateAsAsset(&config, program, environment)
		if err != nil || from != "" || config.Workloads.Simulate != nil ||
			!slices.Equal(config.Controllers.Enabled, []string{"-*"}) {
			t.Errorf("%s: %q, %v, %v", program, from, config.Workloads.Simulate, err)
		}
	}
}

func TestAssetSettingsErrors(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "assets")
	fails(t, exit.Misuse, []string{"--simulate: nodes=many: use a number such as 3"},
		"envtest", "--simulate=nodes=many", dir)
	if exists(dir) {
		t.Error("a wrong flag has made the directory")
	}
	succeeds(t, "envtest", dir)
	file := filepath.Join(dir, assetSettings)
	for text, want := range map[string]string{
		"simulate: {nodes: [1]}\n": file + ": simulate: nodes is not a word or a number",
		"secure-port: 1\n":         file + ": secure-port is not a setting",
		"- simulate\n":             file + " is not a mapping of settings",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := simulateAsAsset(&bowsprit.Config{}, filepath.Join(dir, "kube-apiserver"), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestAssetStages checks that the paths of Stages are absolute: envtest starts the server in another directory.
func TestAssetStages(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "internal", "workload", "play", "testdata", "pods", "start.yaml")
	c := bowsprit.WorkloadsConfig{Simulate: map[string]string{"stages": file}}
	if err := checkSimulation(c); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(c.Simulate["stages"]) {
		t.Errorf("stages are %s", c.Simulate["stages"])
	}
}
