package config

import (
	"slices"
	"strings"
)

// Admission configures the plugins that change and refuse writes.
type Admission struct {
	// Plugins admit writes inside the process, in the given order, after kube's plugins about single kinds and before
	// webhooks and policies.
	Plugins []AdmissionPlugin
	// Disabled are the names of plugins that let every request pass, such as "NamespaceLifecycle". All others are on,
	// also NodeRestriction, which is off in kube-apiserver unless a flag switches it on.
	Disabled []string
	// ConfigFile is a file with an AdmissionConfiguration of kube-apiserver, YAML: credentials for webhooks, folders
	// with webhooks and policies in files, resources that require a ResourceQuota in each namespace, and the levels and
	// exemptions of PodSecurity. "" means none.
	ConfigFile string
}

func (c *Admission) settings() []Setting {
	return []Setting{
		{
			Name:  "disable-admission-plugins",
			Help:  "admission plugins to switch off: " + strings.Join(AdmissionPlugins(), ", "),
			Value: &c.Disabled, Only: Serve,
		},
		{
			Name:  "admission-control-config-file",
			Help:  "file with an AdmissionConfiguration: credentials for webhooks, folders of webhooks and policies in files, resources that need a quota, levels of PodSecurity (default: none)",
			Value: &c.ConfigFile,
		},
	}
}

func (c *Admission) validate(p *problems) {
	known := AdmissionPlugins()
	for _, own := range c.Plugins {
		if own.Name == "" || slices.Contains(known, own.Name) {
			p.add("Admission.Plugins: each needs a unique name, and %q is taken or empty", own.Name)
		}
		known = append(known, own.Name)
	}
	for _, name := range c.Disabled {
		if !slices.Contains(known, name) {
			p.add("--disable-admission-plugins: %q is unknown: use %s", name, strings.Join(known, ", "))
		}
	}
}
