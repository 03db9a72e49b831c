// Package configuration reads the file of --admission-control-config-file, an AdmissionConfiguration of kube-apiserver
// with the settings of configurable plugins. It only reads the file; the server passes the settings to the plugins, and
// package manifest reads the folders that the file names.
package configuration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurity "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"k8s.io/pod-security-admission/admission/api/validation"
	"sigs.k8s.io/yaml"
)

// Configuration is the content of the file. The zero value represents no file.
type Configuration struct {
	MutatingWebhooks, ValidatingWebhooks Webhooks
	// MutatingPolicies and ValidatingPolicies are folders with manifests of policies and bindings, "" for none.
	MutatingPolicies, ValidatingPolicies string
	// Limited lists the resources that cannot be created without a quota.
	Limited []Limited
	// PodSecurity is the validated configuration of the plugin of that name; nil if there is none.
	PodSecurity *podsecurity.PodSecurityConfiguration
	// Unused lists the plugins in the file with a configuration that has no effect, in the order of the file.
	Unused []string
}

// HasManifests reports whether a plugin has a folder with manifests.
func (c *Configuration) HasManifests() bool {
	return c.MutatingWebhooks.Manifests+c.ValidatingWebhooks.Manifests+c.MutatingPolicies+c.ValidatingPolicies != ""
}

// Webhooks is the configuration of one of the plugins for webhooks.
type Webhooks struct {
	// Kubeconfig is a file with the credentials for webhooks, "" for none.
	Kubeconfig string
	// Manifests is a folder with manifests of webhook configurations, "" for none.
	Manifests string
}

// Options are the settings of the server that limit the file's content.
type Options struct {
	// Manifests allows folders with manifests: Kubernetes' feature gate ManifestBasedAdmissionControlConfig.
	Manifests bool
}

// Limited requires a quota for every counted name that contains one of MatchContains.
type Limited struct {
	Group         string   `json:"apiGroup"`
	Resource      string   `json:"resource"`
	MatchContains []string `json:"matchContains"`
	// MatchScopes lists the scopes that an object may be in only if a quota covers them.
	MatchScopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes"`
}

// file is an AdmissionConfiguration.
type file struct {
	metav1.TypeMeta
	Plugins []struct {
		Name          string         `json:"name"`
		Path          string         `json:"path"`
		Configuration map[string]any `json:"configuration"`
	} `json:"plugins"`
}

// Read reads a file. Errors name the problem and its position.
func Read(path string, o Options) (Configuration, error) {
	var c Configuration
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("unable to read admission control configuration: %w", err)
	}
	var f file
	if err := decode(data, &f, &f.TypeMeta, "AdmissionConfiguration", "apiserver.config.k8s.io/v1",
		"apiserver.k8s.io/v1alpha1"); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[string]bool{}
	for _, p := range f.Plugins {
		if seen[p.Name] {
			continue // as in Kubernetes, the first counts
		}
		seen[p.Name] = true
		var data []byte
		where := path
		switch {
		case p.Configuration != nil:
			data, err = yaml.Marshal(p.Configuration)
		case p.Path != "":
			if where = p.Path; !filepath.IsAbs(where) {
				where = filepath.Join(filepath.Dir(path), where)
			}
			data, err = os.ReadFile(where)
		default:
			continue
		}
		if err == nil {
			err = c.plugin(p.Name, data, o)
		}
		if err != nil {
			return c, fmt.Errorf("%s: configuration of %s: %w", where, p.Name, err)
		}
	}
	return c, nil
}

func (c *Configuration) plugin(name string, data []byte, o Options) (err error) {
	switch name {
	case "MutatingAdmissionWebhook":
		c.MutatingWebhooks, err = o.webhooks(data)
	case "ValidatingAdmissionWebhook":
		c.ValidatingWebhooks, err = o.webhooks(data)
	case "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy":
		var folder string
		if folder, err = o.policies(data, name+"Configuration"); name == "MutatingAdmissionPolicy" {
			c.MutatingPolicies = folder
		} else {
			c.ValidatingPolicies = folder
		}
	case "ResourceQuota":
		c.Limited, err = limitedOf(data)
	case "PodSecurity":
		if c.PodSecurity, err = load.LoadFromData(data); err == nil {
			err = validation.ValidatePodSecurityConfiguration(c.PodSecurity).ToAggregate()
		}
	default:
		c.Unused = append(c.Unused, name)
	}
	return err
}

func (o Options) webhooks(data []byte) (Webhooks, error) {
	var w struct {
		metav1.TypeMeta
		KubeConfigFile     string `json:"kubeConfigFile"`
		StaticManifestsDir string `json:"staticManifestsDir"`
	}
	err := decode(data, &w, &w.TypeMeta, "WebhookAdmissionConfiguration", "apiserver.config.k8s.io/v1")
	if err == nil && w.KubeConfigFile != "" && !filepath.IsAbs(w.KubeConfigFile) {
		err = field.Invalid(field.NewPath("kubeConfigFile"), w.KubeConfigFile, "must be an absolute file path")
	}
	if err == nil {
		err = o.checkFolder(w.StaticManifestsDir)
	}
	return Webhooks{Kubeconfig: w.KubeConfigFile, Manifests: w.StaticManifestsDir}, err
}

func (o Options) policies(data []byte, kind string) (folder string, err error) {
	var p struct {
		metav1.TypeMeta
		StaticManifestsDir string `json:"staticManifestsDir"`
	}
	if err = decode(data, &p, &p.TypeMeta, kind, "apiserver.config.k8s.io/v1"); err == nil {
		err = o.checkFolder(p.StaticManifestsDir)
	}
	return p.StaticManifestsDir, err
}

// checkFolder checks the folder of a plugin's manifests. The texts are kube-apiserver's.
func (o Options) checkFolder(folder string) error {
	if folder == "" {
		return nil
	}
	path := field.NewPath("staticManifestsDir")
	if !o.Manifests {
		return field.Forbidden(path,
			"staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled")
	}
	if !filepath.IsAbs(folder) {
		return field.Invalid(path, folder, "must be an absolute file path")
	}
	info, err := os.Stat(folder)
	if err != nil {
		return field.Invalid(path, folder, fmt.Sprintf("unable to read: %v", err))
	}
	if !info.IsDir() {
		return field.Invalid(path, folder, "must be a directory")
	}
	return nil
}

func limitedOf(data []byte) ([]Limited, error) {
	var q struct {
		metav1.TypeMeta
		LimitedResources []Limited `json:"limitedResources"`
	}
	err := decode(data, &q, &q.TypeMeta, "ResourceQuotaConfiguration", "apiserver.config.k8s.io/v1")
	if err != nil && q.Kind == "Configuration" {
		err = decode(data, &q, &q.TypeMeta, "Configuration", "resourcequota.admission.k8s.io/v1beta1",
			"resourcequota.admission.k8s.io/v1alpha1")
	}
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	for i, l := range q.LimitedResources {
		if l.Resource == "" {
			errs = append(errs, field.Required(field.NewPath("limitedResources").Index(i).Child("resource"), ""))
		}
	}
	return q.LimitedResources, errs.ToAggregate()
}

// decode decodes YAML of a kind in one of several versions. Unknown fields are errors.
func decode(data []byte, into any, typeMeta *metav1.TypeMeta, kind string, versions ...string) error {
	if err := yaml.Unmarshal(data, typeMeta); err != nil {
		return err
	}
	if typeMeta.Kind != kind || !slices.Contains(versions, typeMeta.APIVersion) {
		return fmt.Errorf("it is of apiVersion %q, kind %q: use %s, %s",
			typeMeta.APIVersion, typeMeta.Kind, versions[0], kind)
	}
	return yaml.UnmarshalStrict(data, into)
}
