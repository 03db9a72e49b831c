package config

import (
	"cmp"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
)

// Signing configures the authorities that sign approved CertificateSigningRequests to Kubernetes' signers: the
// server's own authority, one from files, or one for each signer. In the last case other programs sign for signers
// without an authority. The server accepts certificates of other authorities only if Authentication.ClientCAFile
// holds them. It reads the files for each certificate.
type Signing struct {
	AuthorityFiles // for all signers

	KubeletServing, KubeletClient, KubeAPIServerClient, LegacyUnknown AuthorityFiles // for one each

	// Duration is how long certificates last at most, a year if zero. Requests may wish for less.
	Duration time.Duration
}

// AuthorityFiles are the certificate and the key of an authority; both, or neither.
type AuthorityFiles struct {
	CertFile, KeyFile string // PEM
}

// SignerFiles is where the authority of one signer is configured, of all if signer is "", and by which flags.
type SignerFiles struct {
	Signer, Cert, Key string
	Files             *AuthorityFiles
}

// Signers returns the files of each signer that the server can be.
func Signers(c *Signing) []SignerFiles {
	return []SignerFiles{
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
func (c *Signing) everySigner() SignerFiles {
	return SignerFiles{"", "cluster-signing-cert-file", "cluster-signing-key-file", &c.AuthorityFiles}
}

// defaultSigningDuration is kube-controller-manager's.
const defaultSigningDuration = 365 * 24 * time.Hour

func (c *Signing) setDefaults() { c.Duration = cmp.Or(c.Duration, defaultSigningDuration) }

func (c *Signing) settings() []Setting {
	every := c.everySigner()
	all := []Setting{
		{
			Name:  every.Cert,
			Help:  "authority that signs approved CertificateSigningRequests, PEM (default: the server's own)",
			Value: &c.CertFile, Only: Serve,
		},
		{Name: every.Key, Help: "its key, PEM", Value: &c.KeyFile, Only: Serve},
	}
	for _, s := range Signers(c) {
		all = append(all, Setting{
			Name:  s.Cert,
			Help:  "authority for the signer " + s.Signer + " alone, PEM; signers without one are then left to other controllers",
			Value: &s.Files.CertFile, Only: Serve,
		}, Setting{Name: s.Key, Help: "its key, PEM", Value: &s.Files.KeyFile, Only: Serve})
	}
	return append(all, Setting{
		Name:  "cluster-signing-duration",
		Help:  "maximum lifetime of the certificates",
		Value: &c.Duration, Default: defaultSigningDuration, Only: Serve,
	})
}

func (c *Signing) validate(p *problems) {
	single := false
	for _, s := range append(Signers(c), c.everySigner()) {
		single = single || s.Signer != "" && *s.Files != (AuthorityFiles{})
		switch {
		case *s.Files == (AuthorityFiles{}):
		case s.Files.CertFile == "" || s.Files.KeyFile == "":
			p.add("--%s and --%s: give both, or none", s.Cert, s.Key)
		default:
			if err := (pki.Authority(*s.Files)).Check(); err != nil {
				p.add("--%s: %w", s.Cert, err)
			}
		}
	}
	if single && c.AuthorityFiles != (AuthorityFiles{}) {
		p.add("--cluster-signing-cert-file is for all signers, and other flags name files for single ones: use one form")
	}
	if c.Duration < 0 {
		p.add("--cluster-signing-duration %s is negative: use a duration such as 8760h", c.Duration)
	}
}
