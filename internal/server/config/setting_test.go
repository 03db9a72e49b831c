package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSettings checks that each setting has one declaration with a help text, and points into its own configuration.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, command := range []Command{Serve, KubeAPIServer} {
		c := &Config{}
		seen := map[string]bool{}
		pointers := map[uintptr]string{}
		for _, s := range c.Settings(command) {
			if seen[s.Name] {
				t.Errorf("%s: two settings are named %s", command, s.Name)
			}
			seen[s.Name] = true
			if s.Help == "" {
				t.Errorf("%s: %s has no help", command, s.Name)
			}
			v := reflect.ValueOf(s.Value)
			if v.Kind() != reflect.Pointer {
				continue // gates
			}
			if other := pointers[v.Pointer()]; other != "" {
				t.Errorf("%s: %s and %s are one field", command, s.Name, other)
			}
			pointers[v.Pointer()] = s.Name
			if s.Default != nil && reflect.TypeOf(s.Default) != v.Type().Elem() {
				t.Errorf("%s: the default of %s is a %T, the field a %s", command, s.Name, s.Default, v.Type().Elem())
			}
		}
	}
}

// TestErrorsNameFlags holds that every flag that an error or a log line names is one.
func TestErrorsNameFlags(t *testing.T) {
	t.Parallel()
	known := []string{"cert-dir"}
	for _, s := range (&Config{}).Settings("") {
		known = append(known, s.Name)
	}
	for _, s := range slices.Concat((&Config{}).Settings(Serve), (&Config{}).Settings(KubeAPIServer)) {
		known = append(known, s.Name)
	}
	var files []string
	for _, pattern := range []string{"*.go", "../*.go", "../parts/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, names...)
	}
	if len(files) < 40 {
		t.Fatalf("only %d files: the test looks at the wrong thing", len(files))
	}
	flag := regexp.MustCompile(`--([a-z][a-z0-9-]+[a-z0-9])(-\*)?`) // NAME-* means several
	found := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flag.FindAllStringSubmatch(string(src), -1) {
			several := func(name string) bool { return m[2] != "" && strings.HasPrefix(name, m[1]+"-") }
			if found++; !slices.Contains(known, m[1]) && !slices.ContainsFunc(known, several) {
				t.Errorf("%s: --%s is no flag", file, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d flags are named: the test looks at the wrong thing", found)
	}
}

// TestDefaultsOfFlags checks that the default of each flag of serve is the value that the server uses without the flag.
func TestDefaultsOfFlags(t *testing.T) {
	t.Parallel()
	c := WithDefaults(Config{})
	compared := 0
	for _, s := range c.Settings(Serve) {
		if s.Default == nil || s.Name == "secure-port" { // 0 is a port too: a free one
			continue
		}
		compared++
		if got := reflect.ValueOf(s.Value).Elem().Interface(); !reflect.DeepEqual(got, s.Default) {
			t.Errorf("--%s: the default is %v, and the server uses %v", s.Name, s.Default, got)
		}
	}
	if compared < 40 {
		t.Errorf("only %d defaults are compared", compared)
	}
}
