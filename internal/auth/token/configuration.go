package token

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	schemacel "github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// OIDC configures one issuer, like Kubernetes' flags --oidc-*.
type OIDC struct {
	IssuerURL, ClientID           string
	CAFile                        string
	UsernameClaim, UsernamePrefix string // the claim defaults to "sub"; the prefix "-" means none
	GroupsClaim, GroupsPrefix     string
	SigningAlgs                   []string // defaults to RS256
	RequiredClaims                map[string]string
}

func (o *OIDC) used() bool { return o.IssuerURL != "" && o.ClientID != "" }

// configuration returns the validated configuration from the file or the flags.
func (r *Remote) configuration() (*apiserver.AuthenticationConfiguration, error) {
	c := &apiserver.AuthenticationConfiguration{}
	switch {
	case r.config.File != "":
		data, err := os.ReadFile(r.config.File)
		if err == nil {
			c, err = decode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("failed to load authentication configuration from file %q: %w", r.config.File, err)
		}
		r.reload.seen = string(data)
		// Accept every algorithm of a key.
		r.algs = oidc.AllValidSigningAlgorithms()
	case r.config.OIDC.used():
		issuer, err := r.config.OIDC.issuer()
		if err != nil {
			return nil, err
		}
		c.JWT = []apiserver.JWTAuthenticator{issuer}
		r.algs = r.config.OIDC.SigningAlgs
	}
	if err := r.validate(c); err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	return c, nil
}

func (r *Remote) validate(c *apiserver.AuthenticationConfiguration) error {
	return validation.ValidateAuthenticationConfiguration(compiler(), c, r.config.Own).ToAggregate()
}

// compiler returns the compiler of the expressions on claims and users.
func compiler() cel.Compiler { return cel.NewCompiler(schemacel.Bounded()) }

// decode reads an AuthenticationConfiguration of any version, strictly.
func decode(data []byte) (*apiserver.AuthenticationConfiguration, error) {
	if len(data) == 0 {
		return nil, errors.New("empty config data")
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	object, err := runtime.Decode(decoder, data)
	if err != nil {
		return nil, err
	}
	c, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", object)
	}
	return c, nil
}

// issuer converts the flags to a configuration.
func (o *OIDC) issuer() (apiserver.JWTAuthenticator, error) {
	claim, prefix := o.UsernameClaim, o.UsernamePrefix
	if claim == "" {
		claim = "sub"
	}
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && claim != "email":
		prefix = o.IssuerURL + "#" // so that names of two issuers cannot be confused
	}
	j := apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: o.IssuerURL, Audiences: []string{o.ClientID}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Prefix: &prefix, Claim: claim},
		},
	}
	if o.GroupsClaim != "" {
		j.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Prefix: &o.GroupsPrefix, Claim: o.GroupsClaim}
	}
	if o.CAFile != "" {
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return j, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		j.Issuer.CertificateAuthority = string(data)
	}
	for _, name := range slices.Sorted(maps.Keys(o.RequiredClaims)) {
		j.ClaimValidationRules = append(j.ClaimValidationRules,
			apiserver.ClaimValidationRule{Claim: name, RequiredValue: o.RequiredClaims[name]})
	}
	return j, nil
}
