package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// API selects the built-in kinds and the formats of the API.
type API struct {
	// CBOR lets clients send and receive CBOR, and stores custom objects in it: Kubernetes' feature gate
	// CBORServingAndStorage, which is off by default there too. The server always reads objects stored in CBOR.
	CBOR bool
	// CoordinatedLeaderElection assigns a Lease with LeaseCandidates to the best candidate: Kubernetes' feature gate of
	// that name, which is off by default there too. RuntimeConfig must enable coordination.k8s.io/v1beta1.
	CoordinatedLeaderElection bool
	// UnsafeMalformedObjectDeletion allows users with the verb "unsafe-delete-ignore-read-errors" to delete objects
	// that cannot be decrypted or decoded, with the delete option ignoreStoreReadErrorWithClusterBreakingPotential, and
	// adds the names of such objects to errors: Kubernetes' feature gate AllowUnsafeMalformedObjectDeletion. The
	// commands enable it by default, as Kubernetes does from 1.37 on.
	UnsafeMalformedObjectDeletion bool
	// Features switches features of built-in kinds on and off, by the names of Kubernetes' feature gates that are on by
	// default. Writes drop the fields of a disabled feature, unless the stored object has them already. Unnamed gates
	// take the default of the emulated release. Some features are off in every release:
	// TaintTolerationComparisonOperators adds operators to tolerations, ShardedListAndWatch lets clients list and watch
	// parts of collections, StorageVersionAPI maintains StorageVersions, and GenericWorkload keeps groups of pods.
	// Their kinds also need their versions in RuntimeConfig. From 1.37 on ClusterTrustBundle and PodCertificateRequest
	// serve the kinds of these names, ClusterTrustBundleProjection and PodCertificateRequest let pods mount them, and
	// ManifestBasedAdmissionControlConfig allows webhooks and policies in files, and reserves their names.
	Features map[string]bool
	// RuntimeConfig switches built-in kinds on and off, as kube-apiserver's flag --runtime-config: "group/version"
	// ("v1" for the core group) or "group/version/resource" to "true" or "false", "api/all", "api/ga", "api/beta" and
	// "api/alpha" for all versions of such names. The server's own controllers also use disabled kinds.
	RuntimeConfig map[string]string
}

func (c *API) settings(command Command, all *Config) []Setting {
	gates := map[string]any{
		"CBORServingAndStorage": &c.CBOR, "CoordinatedLeaderElection": &c.CoordinatedLeaderElection,
		"AllowUnsafeMalformedObjectDeletion": &c.UnsafeMalformedObjectDeletion, "KMSv1": &all.Encryption.KMSv1,
		"UnknownVersionInteroperabilityProxy": &all.Aggregation.PeerProxy,
	}
	maps.Copy(gates, all.Authorization.gates())
	maps.Copy(gates, all.Kubelet.gates())
	maps.Copy(gates, kinds.FeatureGates(&c.Features))
	// Users need a permission of its own. Without the feature only etcd can remove such an object.
	c.UnsafeMalformedObjectDeletion = true
	help := "kube-apiserver's feature gates with an effect here, Name=true|false: "
	if command == KubeAPIServer {
		help = "kube-apiserver's feature gates, Name=true|false; the gates with an effect here: "
	}
	return []Setting{
		{Name: "feature-gates", Help: help + strings.Join(slices.Sorted(maps.Keys(gates)), ", "), Value: gates},
		{Name: "runtime-config", Value: &c.RuntimeConfig,
			Help: `built-in kinds to enable or disable, key=true|false: group/version ("v1" for the core group), group/version/resource, or api/all, api/ga, api/beta, api/alpha for all such versions`},
	}
}

func (c *API) validate(p *problems) {
	if err := kinds.RuntimeConfig(c.RuntimeConfig).Validate(); err != nil {
		p.add("--runtime-config: %w", err)
	}
	if err := kinds.CheckFeatures(c.Features); err != nil {
		p.add("--feature-gates: %w", err)
	}
}
