// Package plugins lists the admission plugins for single kinds in the order of the chain. The packages below it hold
// the plugins, one package for each API group.
package plugins

import (
	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/certificates"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/core"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/network"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/node"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/scheduling"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/storage"
)

// plugins are all plugins, in Kubernetes' order (AllOrderedPlugins in k8s.io/kubernetes/pkg/kubeapiserver/options).
var plugins = []struct {
	name string
	make func(plugin.Config) []plugin.Rule
}{
	{"LimitRanger", core.LimitRanger},
	{"ServiceAccount", core.ServiceAccount},
	{"NodeRestriction", core.NodeRestriction},
	{"TaintNodesByCondition", core.NodeTaint},
	{"PodSecurity", core.PodSecurity},
	{"Priority", scheduling.Priority},
	{"DefaultTolerationSeconds", core.TolerationSeconds},
	{"DefaultStorageClass", storage.StorageClass},
	{"StorageObjectInUseProtection", storage.StorageProtection},
	{"PodGroupProtection", scheduling.GroupProtection},
	{"PersistentVolumeClaimResize", storage.ClaimResize},
	{"RuntimeClass", node.RuntimeClass},
	{"CertificateApproval", certificates.CertificateApproval},
	{"CertificateSigning", certificates.CertificateSigning},
	{"ClusterTrustBundleAttest", certificates.ClusterTrustBundleAttest},
	{"CertificateSubjectRestriction", certificates.CertificateSubject},
	{"DefaultIngressClass", network.IngressClass},
	{"PodTopologyLabels", core.PodTopology},
	{"NodeDeclaredFeatureValidator", core.DeclaredFeature},
	{"PodResizeValidator", core.PodResize},
}

// Names returns the names of all plugins, which are Kubernetes' names, in the order of the chain.
func Names() []string {
	var out []string
	for _, p := range plugins {
		out = append(out, p.name)
	}
	return out
}

// All returns all plugins in the order of the chain.
func All(c plugin.Config) []admit.Plugin {
	var out []admit.Plugin
	for _, p := range plugins {
		out = append(out, plugin.New(p.name, p.make(c)))
	}
	return out
}
