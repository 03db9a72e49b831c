package stages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// folder returns the directory of kwok's Stages, in the cache of modules.
func folder(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "kustomize", "stage")
}

// TestGolden checks that kwok's own Stages give the results in kwok's testdata, each with its neighbouring Stages.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join(folder(t), "*", "*", "testdata", "*.input.yaml"))
	if err != nil || len(inputs) < 14 {
		t.Fatalf("%d inputs: %v", len(inputs), err)
	}
	for _, input := range inputs {
		name, _ := filepath.Rel(folder(t), strings.TrimSuffix(input, ".input.yaml"))
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			readYAML(t, input, &object)
			var stages []string
			for _, text := range stagesIn(t, filepath.Dir(filepath.Dir(input))) {
				if kindOf(t, text) == object["kind"] {
					stages = append(stages, text)
				}
			}
			want := struct {
				Stages []outcome `json:"stages"`
			}{}
			readYAML(t, strings.Replace(input, ".input.", ".output.", 1), &want)
			if len(want.Stages) == 0 {
				t.Fatal("kwok expects nothing")
			}
			if diff := cmp.Diff(want.Stages, ours(t, stages, object)); diff != "" {
				t.Errorf("-kwok +ours:\n%s", diff)
			}
			if diff := cmp.Diff(theirs(t, stages, object), ours(t, stages, object)); diff != "" {
				t.Errorf("-kwok +ours:\n%s", diff)
			}
		})
	}
}

// TestRead checks that all of kwok's Stages can be read, folder by folder, as in a server's settings.
func TestRead(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(folder(t), "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range folders {
		wanted := len(stagesIn(t, f))
		if wanted == 0 {
			continue
		}
		stages, err := stage.Read(f)
		if err != nil || len(stages) != wanted {
			t.Errorf("%s: %d Stages of %d, %v", f, len(stages), wanted, err)
		}
		found += len(stages)
	}
	if found != 19 {
		t.Errorf("%d Stages, kwok has 19", found)
	}
}

// stagesIn returns the Stages in a folder.
func stagesIn(t *testing.T, folder string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kind: Stage\n") {
			out = append(out, string(text))
		}
	}
	return out
}

// kindOf returns the kind that a Stage is about.
func kindOf(t *testing.T, text string) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stage.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return s.Of.Kind
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
