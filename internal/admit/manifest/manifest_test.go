package manifest

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the results into testdata")

// folderCase is a case: the files of a folder, and its objects or the error. The texts are kube-apiserver's:
// test/oracle-builtins reads the same cases with Kubernetes' loaders.
type folderCase struct {
	Name  string            `json:"case"`
	Open  string            `json:"open"` // the function
	Files map[string]string `json:"files"`
	Found []string          `json:"found,omitempty"` // "policy: binding binding", "configuration: webhook webhook"
	Wrong string            `json:"wrong,omitempty"` // with $DIR for the folder
}

func TestFolders(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var cases []folderCase
			if err := yaml.UnmarshalStrict(data, &cases); err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				c := &cases[i]
				got := *c
				got.Found, got.Wrong = readCase(t, c)
				if *update {
					*c = got
				} else if !reflect.DeepEqual(&got, c) {
					t.Errorf("%s\ngot  %q, %s\nwant %q, %s", c.Name, got.Found, got.Wrong, c.Found, c.Wrong)
				}
			}
			if !*update {
				return
			}
			if data, err = yaml.Marshal(cases); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// readCase returns the result of a case's function for a folder with its files.
func readCase(t *testing.T, c *folderCase) (found []string, wrong string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range c.Files {
		write(t, filepath.Join(dir, name), text)
	}
	config := Config{Folder: dir, Plugin: "P", Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	var err error
	switch c.Open {
	case "ValidatingWebhooks":
		found, err = namesOf(ValidatingWebhooks(config))(hookNames)
	case "MutatingWebhooks":
		found, err = namesOf(MutatingWebhooks(config))(hookNames)
	case "ValidatingPolicies":
		found, err = namesOf(ValidatingPolicies(config))(func(p ValidatingPolicy) (string, []string) {
			return p.Policy.Name, bindingNames(p.Bindings)
		})
	case "MutatingPolicies":
		found, err = namesOf(MutatingPolicies(config))(func(p MutatingPolicy) (string, []string) {
			return p.Policy.Name, bindingNames(p.Bindings)
		})
	default:
		t.Fatalf("%s: no function %q", c.Name, c.Open)
	}
	if err != nil {
		wrong = strings.ReplaceAll(err.Error(), dir, "$DIR")
	}
	return found, wrong
}

// namesOf returns a function that lists the objects of a source by their names.
func namesOf[T any](s *Source[T], err error) func(names func(T) (string, []string)) ([]string, error) {
	return func(names func(T) (string, []string)) (found []string, _ error) {
		if err != nil {
			return nil, err
		}
		for _, one := range s.List().Items {
			name, parts := names(one)
			found = append(found, name+": "+strings.Join(parts, " "))
		}
		return found, nil
	}
}

func hookNames(w Webhooks) (string, []string) {
	var hooks []string
	for _, h := range w.Hooks {
		hooks = append(hooks, h.Name)
	}
	return w.Name, hooks
}

func bindingNames[B interface{ GetName() string }](bindings []B) (all []string) {
	for _, b := range bindings {
		all = append(all, b.GetName())
	}
	return all
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
