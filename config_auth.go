package bowsprit

// AuthConfig says how clients are authenticated, and what they may do.
type AuthConfig struct {
	// ClientCAFile holds further authorities whose client certificates are believed.
	ClientCAFile string
	// TokenAuthFile holds static bearer tokens: lines of token,user,uid,"group1,group2".
	TokenAuthFile string
	// AlwaysAllow lets every user who is authenticated do everything, as kube's authorization mode of that name: for
	// tests. It implies NoAnonymous.
	AlwaysAllow bool
	// NoAnonymous refuses requests without a client certificate or token (401), even those about health.
	NoAnonymous bool
}

func (c *AuthConfig) settings() []Setting {
	return []Setting{
		{
			Name: "client-ca-file", Help: "further authorities whose client certificates are believed, PEM",
			Value: &c.ClientCAFile,
		},
		{
			Name: "token-auth-file", Help: `static bearer tokens, lines of token,user,uid,"group1,group2"`,
			Value: &c.TokenAuthFile,
		},
	}
}
