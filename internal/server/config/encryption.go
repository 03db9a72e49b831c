package config

// Encryption configures the encryption of stored objects. By default nothing is encrypted.
type Encryption struct {
	// ConfigFile holds an EncryptionConfiguration of apiserver.config.k8s.io/v1, as for kube-apiserver: it assigns keys
	// or KMS plugins to resources, custom ones included. Data is interchangeable with kube-apiserver's.
	ConfigFile string
	// AutomaticReload has the file read again when it changes, without a restart.
	AutomaticReload bool
	// KMSv1 takes plugins of the first version of the KMS API too, which is deprecated: kube's feature gate of that
	// name, which is off by default there too. It counts for all servers of the process.
	KMSv1 bool
}

func (c *Encryption) settings() []Setting {
	return []Setting{
		{
			Name:  "encryption-provider-config",
			Help:  "file with an EncryptionConfiguration: which resources are encrypted in etcd, and how (default: none)",
			Value: &c.ConfigFile,
		},
		{
			Name:  "encryption-provider-config-automatic-reload",
			Help:  "reload the file of --encryption-provider-config when it changes; KMS plugins then share one health check",
			Value: &c.AutomaticReload,
		},
	}
}

func (c *Encryption) validate(p *problems) {
	if c.AutomaticReload && c.ConfigFile == "" {
		p.add("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
	}
}
