package oraclebuiltins

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	policyloader "k8s.io/kubernetes/pkg/admission/plugin/policy/manifest/loader"
	webhookloader "k8s.io/kubernetes/pkg/admission/plugin/webhook/manifest/loader"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/admit/registration"
)

// TestManifests reads the cases of admit/manifest with Kubernetes' loaders, and compares objects, hashes and errors.
func TestManifests(t *testing.T) {
	t.Parallel()
	cases := 0
	for _, name := range []string{"webhooks.yaml", "policies.yaml"} {
		data, err := os.ReadFile(filepath.Join("../../internal/admit/manifest/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var all []struct {
			Name  string            `json:"case"`
			Open  string            `json:"open"`
			Files map[string]string `json:"files"`
		}
		if err := yaml.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			cases++
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for name, text := range c.Files {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				ours, theirs := readManifests(c.Open, dir), loadManifests(c.Open, dir)
				if diff := cmp.Diff(theirs, ours); diff != "" {
					t.Errorf("theirs -, ours +\n%s", diff)
				}
			})
		}
	}
	if cases < 40 {
		t.Errorf("only %d cases", cases)
	}
}

// manifests is the content of a folder.
type manifests struct{ Objects, Hash, Error string }

// objectType matches lines with the type of an object, which Kubernetes' loaders drop.
var objectType = regexp.MustCompile(`(?m)^( *(?:- )?)apiVersion: admissionregistration.k8s.io/v1\n +kind: .*\n +`)

// describe renders objects as YAML, without their types.
func describe(objects any, hash string, err error) manifests {
	if err != nil {
		return manifests{Error: err.Error()}
	}
	text, err := yaml.Marshal(objects)
	if err != nil {
		return manifests{Error: err.Error()}
	}
	return manifests{Objects: objectType.ReplaceAllString(string(text), "$1"), Hash: hash}
}

// readManifests opens a folder as we do.
func readManifests(open, dir string) manifests {
	registry := prometheus.NewRegistry()
	config := manifest.Config{
		Folder: dir, Plugin: "P", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Metrics: manifest.NewMetrics(registry, "server"),
	}
	switch open {
	case "ValidatingWebhooks":
		return describeSource(manifest.ValidatingWebhooks(config))(registry)
	case "MutatingWebhooks":
		return describeSource(manifest.MutatingWebhooks(config))(registry)
	case "ValidatingPolicies":
		return describeSource(manifest.ValidatingPolicies(config))(registry)
	case "MutatingPolicies":
		return describeSource(manifest.MutatingPolicies(config))(registry)
	}
	return manifests{Error: "unknown function " + open}
}

// describeSource renders the objects of a source, and the hash in its metrics.
func describeSource[T any](s *manifest.Source[T], err error) func(*prometheus.Registry) manifests {
	return func(registry *prometheus.Registry) manifests {
		if err != nil {
			return manifests{Error: err.Error()}
		}
		families, err := registry.Gather()
		hash := "no metric"
		for _, f := range families {
			if strings.HasSuffix(f.GetName(), "_last_config_info") {
				for _, label := range f.GetMetric()[0].GetLabel() {
					if label.GetName() == "hash" {
						hash = label.GetValue()
					}
				}
			}
		}
		return describe(s.List().Items, hash, err)
	}
}

// schemeSource is the name of Kubernetes' scheme.
var schemeSource = regexp.MustCompile(` in scheme ".*"`)

// loadManifests opens a folder as Kubernetes does, and returns the objects in the form of readManifests.
func loadManifests(open, dir string) manifests {
	failed := func(kind string, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("failed to load static %s manifests from %q: %w", kind, dir,
			errors.New(schemeSource.ReplaceAllString(err.Error(), "")))
	}
	switch open {
	case "ValidatingWebhooks":
		r, err := webhookloader.LoadValidatingManifests(dir)
		if err != nil {
			return describe(nil, "", failed("webhook", err))
		}
		var all []manifest.Webhooks
		for _, c := range r.Configurations {
			all = append(all, manifest.Webhooks{Name: c.Name, Hooks: registration.ValidatingHooks(c)})
		}
		return describe(all, r.Hash, nil)
	case "MutatingWebhooks":
		r, err := webhookloader.LoadMutatingManifests(dir)
		if err != nil {
			return describe(nil, "", failed("webhook", err))
		}
		var all []manifest.Webhooks
		for _, c := range r.Configurations {
			all = append(all, manifest.Webhooks{Name: c.Name, Hooks: registration.MutatingHooks(c)})
		}
		return describe(all, r.Hash, nil)
	case "ValidatingPolicies":
		r, err := policyloader.LoadValidatingManifestsFromDirectory(dir)
		if err != nil {
			return describe(nil, "", failed("policy", err))
		}
		var all []manifest.ValidatingPolicy
		for _, p := range r.Policies {
			one := manifest.ValidatingPolicy{Policy: p}
			for _, b := range r.Bindings {
				if b.Spec.PolicyName == p.Name {
					one.Bindings = append(one.Bindings, b)
				}
			}
			all = append(all, one)
		}
		return describe(all, r.Hash, nil)
	default:
		r, err := policyloader.LoadMutatingManifestsFromDirectory(dir)
		if err != nil {
			return describe(nil, "", failed("policy", err))
		}
		var all []manifest.MutatingPolicy
		for _, p := range r.Policies {
			one := manifest.MutatingPolicy{Policy: p}
			for _, b := range r.Bindings {
				if b.Spec.PolicyName == p.Name {
					one.Bindings = append(one.Bindings, b)
				}
			}
			all = append(all, one)
		}
		return describe(all, r.Hash, nil)
	}
}
