// Package pluginlist has the order in which the admission plugins about single kinds are asked. The plugins themselves
// stand beside their kinds: kinds/core/plugins, kinds/storage/plugins and so on.
package pluginlist

import (
	"github.com/bowsprit/bowsprit/internal/admit"
	batchplugins "github.com/bowsprit/bowsprit/internal/kinds/batch/plugins"
	certificatesplugins "github.com/bowsprit/bowsprit/internal/kinds/certificates/plugins"
	coreplugins "github.com/bowsprit/bowsprit/internal/kinds/core/plugins"
	networkplugins "github.com/bowsprit/bowsprit/internal/kinds/network/plugins"
	nodeplugins "github.com/bowsprit/bowsprit/internal/kinds/node/plugins"
	"github.com/bowsprit/bowsprit/internal/kinds/plugin"
	schedulingplugins "github.com/bowsprit/bowsprit/internal/kinds/scheduling/plugins"
	storageplugins "github.com/bowsprit/bowsprit/internal/kinds/storage/plugins"
)

// known are all plugins, in kube's order (AllOrderedPlugins in k8s.io/kubernetes/pkg/kubeapiserver/options).
var known = []struct {
	name string
	make func(plugin.Config) []plugin.Rule
}{
	{"LimitRanger", coreplugins.LimitRanger},
	{"ServiceAccount", coreplugins.ServiceAccount},
	{"NodeRestriction", coreplugins.NodeRestriction},
	{"TaintNodesByCondition", coreplugins.NodeTaint},
	{"PodSecurity", coreplugins.PodSecurity},
	{"Priority", schedulingplugins.Priority},
	{"DefaultTolerationSeconds", coreplugins.TolerationSeconds},
	{"DefaultStorageClass", storageplugins.StorageClass},
	{"StorageObjectInUseProtection", storageplugins.StorageProtection},
	{"PodGroupProtection", schedulingplugins.GroupProtection},
	{"PersistentVolumeClaimResize", storageplugins.ClaimResize},
	{"RuntimeClass", nodeplugins.RuntimeClass},
	{"CertificateApproval", certificatesplugins.CertificateApproval},
	{"CertificateSigning", certificatesplugins.CertificateSigning},
	{"ClusterTrustBundleAttest", certificatesplugins.ClusterTrustBundleAttest},
	{"CertificateSubjectRestriction", certificatesplugins.CertificateSubject},
	{"DefaultIngressClass", networkplugins.IngressClass},
	{"PodTopologyLabels", coreplugins.PodTopology},
	{"PodGroupWorkloadExists", schedulingplugins.PodGroup},
	{"NodeDeclaredFeatureValidator", coreplugins.DeclaredFeature},
	{"JobValidation", batchplugins.Job},
	{"PodResizeValidator", coreplugins.PodResize},
}

// Names returns the names of all plugins, which are kube's, in the order in which they are asked.
func Names() []string {
	var out []string
	for _, p := range known {
		out = append(out, p.name)
	}
	return out
}

// All returns all plugins in the order in which they are asked.
func All(c plugin.Config) []admit.Plugin {
	var out []admit.Plugin
	for _, p := range known {
		out = append(out, plugin.New(p.name, p.make(c)))
	}
	return out
}
