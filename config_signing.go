package bowsprit

import (
	"cmp"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
)

// SigningConfig configures the authorities that sign approved CertificateSigningRequests to Kubernetes' signers: the
// server's own authority, one from files, or one for each signer. In the last case other programs sign for signers
// without an authority. The server accepts certificates of other authorities only if AuthenticationConfig.ClientCAFile
// holds them. It reads the files for each certificate.
type SigningConfig struct {
	AuthorityFiles // for all signers

	KubeletServing, KubeletClient, KubeAPIServerClient, LegacyUnknown AuthorityFiles // for one each

	// Duration is how long certificates last at most, a year if zero. Requests may wish for less.
	Duration time.Duration
}

// AuthorityFiles are the certificate and the key of an authority; both, or neither.
type AuthorityFiles struct {
	CertFile, KeyFile string // PEM
}

// signerFiles is where the authority of one signer is configured, of all if signer is "", and by which flags.
type signerFiles struct {
	signer, cert, key string
	files             *AuthorityFiles
}

func (c *SigningConfig) signers() []signerFiles {
	return []signerFiles{
		{
			certificatesv1.KubeletServingSignerName, "cluster-signing-kubelet-serving-cert-file",
			"cluster-signing-kubelet-serving-key-file", &c.KubeletServing,
		},
		{
			certificatesv1.KubeAPIServerClientKubeletSignerName, "cluster-signing-kubelet-client-cert-file",
			"cluster-signing-kubelet-client-key-file", &c.KubeletClient,
		},
		{
			certificatesv1.KubeAPIServerClientSignerName, "cluster-signing-kube-apiserver-client-cert-file",
			"cluster-signing-kube-apiserver-client-key-file", &c.KubeAPIServerClient,
		},
		{
			certificates.LegacyUnknown, "cluster-signing-legacy-unknown-cert-file",
			"cluster-signing-legacy-unknown-key-file", &c.LegacyUnknown,
		},
	}
}

// everySigner is where the authority of all signers is configured.
func (c *SigningConfig) everySigner() signerFiles {
	return signerFiles{"", "cluster-signing-cert-file", "cluster-signing-key-file", &c.AuthorityFiles}
}

// defaultSigningDuration is kube-controller-manager's.
const defaultSigningDuration = 365 * 24 * time.Hour

func (c *SigningConfig) setDefaults() { c.Duration = cmp.Or(c.Duration, defaultSigningDuration) }

func (c *SigningConfig) settings() []Setting {
	every := c.everySigner()
	all := []Setting{
		{
			Name:  every.cert,
			Help:  "authority that signs approved CertificateSigningRequests, PEM (default: the server's own)",
			Value: &c.CertFile, Only: Serve,
		},
		{Name: every.key, Help: "its key, PEM", Value: &c.KeyFile, Only: Serve},
	}
	for _, s := range c.signers() {
		all = append(all, Setting{
			Name:  s.cert,
			Help:  "authority for the signer " + s.signer + " alone, PEM; signers without one are left to others then",
			Value: &s.files.CertFile, Only: Serve,
		}, Setting{Name: s.key, Help: "its key, PEM", Value: &s.files.KeyFile, Only: Serve})
	}
	return append(all, Setting{
		Name:  "cluster-signing-duration",
		Help:  "how long the certificates last at most",
		Value: &c.Duration, Default: defaultSigningDuration, Only: Serve,
	})
}

func (c *SigningConfig) validate(p *problems) {
	single := false
	for _, s := range append(c.signers(), c.everySigner()) {
		single = single || s.signer != "" && *s.files != (AuthorityFiles{})
		switch {
		case *s.files == (AuthorityFiles{}):
		case s.files.CertFile == "" || s.files.KeyFile == "":
			p.add("--%s and --%s: give both, or none", s.cert, s.key)
		default:
			if err := (pki.Authority(*s.files)).Check(); err != nil {
				p.add("--%s: %w", s.cert, err)
			}
		}
	}
	if single && c.AuthorityFiles != (AuthorityFiles{}) {
		p.add("--cluster-signing-cert-file is for all signers, and there are files for single ones: give one of them")
	}
	if c.Duration < 0 {
		p.add("--cluster-signing-duration %s is negative: use a duration such as 8760h", c.Duration)
	}
}
