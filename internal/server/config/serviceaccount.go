package config

import (
	"net/url"
	"time"
)

// ServiceAccounts configures the signing and validation of service account tokens.
type ServiceAccounts struct {
	// Issuers are the accepted issuers of tokens. This server signs as the first,
	// "https://kubernetes.default.svc.cluster.local" by default.
	Issuers []string
	// SigningKeyFile is the private key that signs tokens, PEM; without it the server makes its own in the data
	// directory. Replicas that share an etcd need the same key. KeyFiles are the public or private keys that validate
	// tokens; the default is the key of SigningKeyFile.
	SigningKeyFile string
	KeyFiles       []string // see SigningKeyFile
	// SigningEndpoint is the socket of a program that signs tokens and has the keys (k8s.io/externaljwt), instead of
	// both. The server starts when it answers.
	SigningEndpoint string
	// JWKSURI is where others find the keys; at this server if empty.
	JWKSURI string
	// MaxTokenExpiration bounds the lifetime of new tokens; 0 means no bound.
	MaxTokenExpiration time.Duration
	// Audiences are the names of this server in tokens; the issuers if empty.
	Audiences []string
}

func (c *ServiceAccounts) settings() []Setting {
	return []Setting{
		{
			Name:  "service-account-issuer",
			Help:  "issuers of service account tokens; the first signs, all are accepted",
			Value: &c.Issuers, Form: Repeated,
		},
		{
			Name:  "service-account-signing-key-file",
			Help:  "private key that signs service account tokens, PEM (default: a generated one)",
			Value: &c.SigningKeyFile,
		},
		{
			Name:  "service-account-signing-endpoint",
			Help:  "socket of a program that signs service account tokens and holds the keys, instead of files",
			Value: &c.SigningEndpoint,
		},
		{
			Name: "service-account-key-file", Help: "keys that verify service account tokens, PEM",
			Value: &c.KeyFiles, Form: Repeated,
		},
		{
			Name:  "service-account-jwks-uri",
			Help:  "URL of the keys for other verifiers, instead of this server's /openid/v1/jwks",
			Value: &c.JWKSURI,
		},
		{
			Name: "service-account-max-token-expiration", Help: "maximum lifetime of requested tokens",
			Value: &c.MaxTokenExpiration,
		},
		{Name: "api-audiences", Help: "names of this server in tokens (default: the issuers)", Value: &c.Audiences},
	}
}

func (c *ServiceAccounts) validate(p *problems) {
	validateIssuers(p, c.Issuers)
	if len(c.KeyFiles) > 0 && c.SigningKeyFile == "" {
		p.add("--service-account-key-file needs a key that signs: add --service-account-signing-key-file")
	}
	if c.SigningEndpoint != "" && (c.SigningKeyFile != "" || len(c.KeyFiles) > 0) {
		p.add("can't set --service-account-signing-key-file and/or --service-account-key-file while setting --service-account-signing-endpoint")
	}
	if u, err := url.Parse(c.JWKSURI); err != nil {
		p.add("service-account-jwks-uri must be a valid URL: %v", err)
	} else if c.JWKSURI != "" && u.Scheme != "https" {
		p.add("service-account-jwks-uri requires https scheme, parsed as: %v", u)
	}
	if t := c.MaxTokenExpiration; t != 0 && (t < time.Hour || t > 1<<32*time.Second) {
		p.add("--service-account-max-token-expiration %s is out of range: use 1h up to 2^32 seconds", t)
	}
}
