package bowsprit

import (
	"maps"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// APIConfig says which built-in kinds and which formats are served.
type APIConfig struct {
	// CBOR lets clients send and get CBOR, and stores custom objects in it: kube's feature gate CBORServingAndStorage,
	// which is off by default there too. Whatever it is, what is stored in CBOR is read.
	CBOR bool
	// CoordinatedLeaderElection gives Leases for which there are LeaseCandidates to the best of them: kube's feature
	// gate of that name, which is off by default there too. RuntimeConfig must have coordination.k8s.io/v1beta1 served.
	CoordinatedLeaderElection bool
	// UnsafeMalformedObjectDeletion lets those who may "unsafe-delete-ignore-read-errors" delete objects that cannot be
	// decrypted or decoded, by the delete option ignoreStoreReadErrorWithClusterBreakingPotential, and has errors name
	// such objects: kube's feature gate AllowUnsafeMalformedObjectDeletion, which is off by default there. The command
	// serve has it on unless it is switched off.
	UnsafeMalformedObjectDeletion bool
	// ClusterTrustBundle and PodCertificateRequest serve the kinds of these names, if RuntimeConfig asks for
	// certificates.k8s.io/v1beta1: kube's feature gates, which are off by default there too.
	ClusterTrustBundle, PodCertificateRequest bool
	// Features switches features of built-in kinds on and off, by the names of kube's feature gates that are on by
	// default: writes lose the fields of one that is off, unless an object has them already. What is not named is on if
	// the release has it that the server behaves like. No release has TaintTolerationComparisonOperators, by which
	// tolerations compare; ShardedListAndWatch, by which clients list and watch parts of collections; StorageVersionAPI
	// and GenericWorkload, by which servers write the StorageVersions, and keep the groups of pods, of RuntimeConfig.
	Features map[string]bool
	// RuntimeConfig switches built-in kinds on and off, as kube-apiserver's flag --runtime-config: "group/version"
	// ("v1" for the core group) or "group/version/resource" to "true" or "false", "api/all", "api/ga", "api/beta" and
	// "api/alpha" for all versions of such names. The server's own controllers see also what is off.
	RuntimeConfig map[string]string
}

func (c *APIConfig) settings(command Command, all *Config) []Setting {
	gates := map[string]any{
		"CBORServingAndStorage": &c.CBOR, "CoordinatedLeaderElection": &c.CoordinatedLeaderElection,
		"AllowUnsafeMalformedObjectDeletion": &c.UnsafeMalformedObjectDeletion, "KMSv1": &all.Encryption.KMSv1,
		"StorageVersionMigrator": &all.Versions.MigratorRole, "ClusterTrustBundle": &c.ClusterTrustBundle,
		"PodCertificateRequest": &c.PodCertificateRequest, "UnknownVersionInteroperabilityProxy": &all.Aggregation.PeerProxy,
	}
	maps.Copy(gates, all.Authorization.gates())
	maps.Copy(gates, all.Kubelet.gates())
	maps.Copy(gates, kinds.FeatureGates(&c.Features))
	if command == Serve { // it takes a permission of its own, and without it such an object can only be removed in etcd
		c.UnsafeMalformedObjectDeletion = true
	}
	help := "kube-apiserver's feature gates that mean something here, Name=true|false: "
	if command == KubeAPIServer {
		help = "kube-apiserver's feature gates, Name=true|false; those that mean something here: "
	}
	return []Setting{
		{Name: "feature-gates", Help: help + strings.Join(slices.Sorted(maps.Keys(gates)), ", "), Value: gates},
		{Name: "runtime-config", Value: &c.RuntimeConfig,
			Help: `built-in kinds to switch on or off, key=true|false: group/version ("v1" for the core group), group/version/resource, or api/all, api/ga, api/beta, api/alpha for all such versions`},
	}
}

// openGates are those of the gates that are on without which kinds are not served, or roles not made.
func (c *Config) openGates() []string {
	gates := map[string]bool{
		"ClusterTrustBundle": c.API.ClusterTrustBundle, "PodCertificateRequest": c.API.PodCertificateRequest,
		"StorageVersionMigrator": c.Versions.MigratorRole,
	}
	maps.Copy(gates, c.API.Features)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(gates)), func(name string) bool { return !gates[name] })
}

func (c *APIConfig) validate(p *problems) {
	if err := kinds.RuntimeConfig(c.RuntimeConfig).Validate(); err != nil {
		p.add("--runtime-config: %w", err)
	}
	if err := kinds.CheckFeatures(c.Features); err != nil {
		p.add("--feature-gates: %w", err)
	}
}
