package configuration

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	podsecurity "k8s.io/pod-security-admission/admission/api"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	const hooks = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	for _, test := range []struct {
		name, text string
		want       Configuration
		err        string // a part of it
	}{
		{"nothing", head, Configuration{}, ""},
		{"older", "apiVersion: apiserver.k8s.io/v1alpha1\nkind: AdmissionConfiguration\n", Configuration{}, ""},
		{"inline and in files", head + `
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /a}
- name: ValidatingAdmissionWebhook
  path: hooks.yaml
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources: [{resource: pods, matchContains: [pods]}, {apiGroup: apps, resource: deployments}]
- name: PodSecurity
  configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: baseline}, exemptions: {namespaces: [a]}}
- name: PodTolerationRestriction
  configuration: {anything: true}
- {name: PodNodeSelector}
- name: ResourceQuota
  configuration: {the second: is not read}
`, Configuration{
			MutatingWebhooks: Webhooks{Kubeconfig: "/a"}, ValidatingWebhooks: Webhooks{Kubeconfig: "/b"},
			Unused: []string{"PodTolerationRestriction"},
			PodSecurity: &podsecurity.PodSecurityConfiguration{
				Defaults: podsecurity.PodSecurityDefaults{
					Enforce: "baseline", EnforceVersion: "latest", Audit: "privileged", AuditVersion: "latest",
					Warn: "privileged", WarnVersion: "latest",
				},
				Exemptions: podsecurity.PodSecurityExemptions{Namespaces: []string{"a"}},
			},
			Limited: []Limited{{Resource: "pods", MatchContains: []string{"pods"}},
				{Group: "apps", Resource: "deployments"}},
		}, ""},
		{"an older quota", head +
			"- {name: ResourceQuota, configuration: {apiVersion: resourcequota.admission.k8s.io/v1beta1, kind: Configuration, limitedResources: [{resource: pods}]}}",
			Configuration{Limited: []Limited{{Resource: "pods"}}}, ""},
		{"another kind", "apiVersion: v1\nkind: Pod", Configuration{},
			`it is of apiVersion "v1", kind "Pod": use apiserver.config.k8s.io/v1, AdmissionConfiguration`},
		{"another kind of a plugin", head + "- {name: ResourceQuota, configuration: {apiVersion: v1, kind: Pod}}",
			Configuration{}, "configuration of ResourceQuota: it is of apiVersion"},
		{"a level that is none", head +
			"- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: most}}}", Configuration{}, `configuration of PodSecurity: defaults.enforce: Invalid value: "most"`},
		{"an unknown field of a plugin", head +
			"- {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, default: {}}}", Configuration{}, `unknown field "default"`},
		{"no resource", head +
			"- {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [{}]}}", Configuration{}, "limitedResources[0].resource: Required value"},
		{"relative", head +
			"- {name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: a}}", Configuration{}, "must be an absolute file path"},
		{"unknown field", head + "- {name: X, config: {}}", Configuration{}, `unknown field "config"`},
		{"no such file", head + "- {name: ResourceQuota, path: nope.yaml}", Configuration{}, "no such file"},
		{"no YAML", "{", Configuration{}, "yaml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "hooks.yaml"), hooks+"kubeConfigFile: /b")
			write(t, filepath.Join(dir, "a.yaml"), test.text)
			got, err := Read(filepath.Join(dir, "a.yaml"), Options{Manifests: true})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "nope"), Options{}); err == nil {
		t.Error("a file that is not there is read")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestManifestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	plugins := func(folder string) string {
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
		for _, plugin := range [][2]string{
			{"MutatingAdmissionWebhook", "WebhookAdmissionConfiguration"},
			{"ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration"},
			{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyConfiguration"},
			{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration"},
		} {
			text += "- {name: " + plugin[0] + ", configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: " + plugin[1] +
				", staticManifestsDir: " + folder + "}}\n"
		}
		return text
	}
	read := func(text string, o Options) (Configuration, error) {
		write(t, filepath.Join(dir, "a.yaml"), text)
		return Read(filepath.Join(dir, "a.yaml"), o)
	}
	on := Options{Manifests: true}
	c, err := read(plugins(dir), on)
	want := Configuration{
		MutatingWebhooks: Webhooks{Manifests: dir}, ValidatingWebhooks: Webhooks{Manifests: dir},
		MutatingPolicies: dir, ValidatingPolicies: dir,
	}
	if err != nil || !reflect.DeepEqual(c, want) || !c.HasManifests() {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := read(plugins(`""`), Options{}); err != nil || c.HasManifests() {
		t.Errorf("no folders: %+v, %v", c, err)
	}
	const policies = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: " +
		"ValidatingAdmissionPolicy, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: " +
		"MutatingAdmissionPolicyConfiguration}}]"
	for _, c := range []struct {
		text    string
		options Options
		want    string
	}{
		{plugins(dir), Options{}, "MutatingAdmissionWebhook: staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"},
		{plugins("relative"), on, `staticManifestsDir: Invalid value: "relative": must be an absolute file path`},
		{plugins(dir + "/nope"), on, "unable to read: stat " + dir + "/nope: no such file or directory"},
		{plugins(dir + "/file"), on, "must be a directory"},
		{policies, on, "use apiserver.config.k8s.io/v1, ValidatingAdmissionPolicyConfiguration"},
	} {
		if _, err := read(c.text, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
