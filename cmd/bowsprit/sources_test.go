package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
)

// settled returns the settings from a command line, an environment and a file.
func settled(t *testing.T, args, environment []string, file string) (*pflag.FlagSet, *serveFlags, error) {
	t.Helper()
	var config bowsprit.Config
	flags := &serveFlags{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	bindFlags(f, &config, flags)
	if file != "" {
		path := filepath.Join(t.TempDir(), "bowsprit.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config="+path)
	}
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f, flags, flags.sources.apply(f, environment)
}

// TestSources checks that the command line overrides the environment, and the environment the file.
func TestSources(t *testing.T) {
	t.Parallel()
	const file = "secure-port: 1\nrequest-timeout: 90s\netcd-servers: [\"http://a:1\", \"http://b:2\"]\n" +
		"runtime-config: {api/alpha: true, batch/v1: false}\ntls-min-version: VersionTLS13\naudit-log-compress: true\n" +
		"cors-allowed-origins:\n- //a,b$\n- //c$\n"
	for _, tc := range []struct {
		name      string
		args, env []string
		flag      string
		want      string
	}{
		{"default", nil, nil, "bind-address", "127.0.0.1"},
		{"file", nil, nil, "secure-port", "1"},
		{"environment", nil, []string{"BOWSPRIT_SECURE_PORT=2"}, "secure-port", "2"},
		{"command line", []string{"--secure-port=3"}, []string{"BOWSPRIT_SECURE_PORT=2"}, "secure-port", "3"},
		{"duration", nil, nil, "request-timeout", "1m30s"},
		{"list", nil, nil, "etcd-servers", "[http://a:1,http://b:2]"},
		{"list in the environment", nil, []string{"BOWSPRIT_ETCD_SERVERS=http://c:3,http://d:4"}, "etcd-servers",
			"[http://c:3,http://d:4]"},
		{"comma in an element", nil, nil, "cors-allowed-origins", `["//a,b$",//c$]`},
		{"pairs", nil, nil, "runtime-config", "api/alpha=true,batch/v1=false"},
		{"switch", nil, nil, "audit-log-compress", "true"},
		{"directory", []string{"--ephemeral"}, []string{"BOWSPRIT_DATA_DIR=/elsewhere"}, "ephemeral", "true"},
	} {
		f, _, err := settled(t, tc.args, tc.env, file)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := f.Lookup(tc.flag).Value.String(); got != tc.want {
			t.Errorf("%s: --%s is %s, want %s", tc.name, tc.flag, got, tc.want)
		}
		if tc.name == "directory" && f.Changed("data-dir") {
			t.Error("--ephemeral: the environment's directory counts")
		}
	}
}

// TestSourcesThatAreWrong checks that one error names all mistakes in the file and the environment, with their places.
func TestSourcesThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file string
		env  []string
		want []string
	}{
		{"secure-prt: 1\nnope: 2\n", nil, []string{"secure-prt is not a setting; did you mean secure-port?", "nope is not"}},
		{"secure-port: abc\nrequest-timeout: soon\n", nil, []string{"bowsprit.yaml: secure-port", `"abc"`, "request-timeout"}},
		{"secure-port: [1]\n", nil, []string{"is a list", "one value of type int"}},
		{"secure-port:\n", nil, []string{"has no value"}},
		{"secure-port: 1\nsecure-port: 2\n", nil, []string{"is not YAML", "already set"}},
		{"- a\n", nil, []string{"not a mapping of settings"}},
		{"etcd-servers: [{a: b}]\n", nil, []string{"not a list of words"}},
		{"config: x\n", nil, []string{"config is not a setting"}},
		{"", []string{"BOWSPRIT_SECURE_PORT=abc"}, []string{"BOWSPRIT_SECURE_PORT: secure-port", `"abc"`}},
		{"", []string{"BOWSPRIT_CONFIG=/does/not/exist"}, []string{"--config: open /does/not/exist"}},
	} {
		_, _, err := settled(t, nil, tc.env, tc.file)
		if err == nil {
			t.Errorf("%q %q is accepted", tc.file, tc.env)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q %q: %v\nhas no %q", tc.file, tc.env, err, want)
			}
		}
	}
	_, flags, err := settled(t, nil, []string{"BOWSPRIT_SECURE_PRT=1", "OTHER=2"}, "")
	if strange := flags.sources.strange; err != nil || len(strange) != 1 ||
		!strings.Contains(strange[0], "did you mean BOWSPRIT_SECURE_PORT?") {
		t.Errorf("%v %q", err, strange)
	}
}

// TestPrintedSettingsAreRead checks that the output of "config print" is a file with the same settings, and names the
// source of each setting.
func TestPrintedSettingsAreRead(t *testing.T) {
	t.Parallel()
	f, flags, err := settled(t, []string{"--bind-address=0.0.0.0", "--etcd-servers=http://a:1,http://b:2", "--ephemeral",
		"--service-node-port-range=30000-31000", "--runtime-config=api/all=true", "--event-ttl=0",
		"--feature-gates=CBORServingAndStorage=true", "--disable-admission-plugins=NodeRestriction", "-v=3",
		"--cors-allowed-origins=//a$", "--allow-metric-labels=a,b=c,d", "--oidc-required-claim=e=f,g"},
		[]string{"BOWSPRIT_SECURE_PORT=7443"}, "request-timeout: 90s\n")
	if err != nil {
		t.Fatal(err)
	}
	var first bytes.Buffer
	if err := printSettings(&first, f, flags.sources.from, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# from BOWSPRIT_SECURE_PORT\nsecure-port: 7443\n", "bowsprit.yaml\nrequest-timeout: 1m30s\n",
		"# from the command line\netcd-servers:\n- http://a:1\n- http://b:2\n", "\nephemeral: true\n"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &first)
		}
	}
	again, _, err := settled(t, nil, nil, first.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, &first)
	}
	f.VisitAll(func(flag *pflag.Flag) {
		if got := again.Lookup(flag.Name).Value.String(); got != flag.Value.String() && flag.Name != configFlag {
			t.Errorf("--%s was %s, and is %s", flag.Name, flag.Value, got)
		}
	})
	var all bytes.Buffer
	if err := printSettings(&all, f, flags.sources.from, true); err != nil {
		t.Fatal(err)
	}
	if got := all.String(); !strings.Contains(got, "\n# audit-policy-file: \"\"\n") ||
		!strings.Contains(got, "\nsecure-port: 7443\n") {
		t.Errorf("with --all:\n%s", got)
	}
	if _, _, err := settled(t, nil, nil, all.String()); err != nil {
		t.Errorf("the file with every setting: %v", err)
	}
}
