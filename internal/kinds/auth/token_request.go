package auth

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TokenSubresource is serviceaccounts/token.
func TokenSubresource() catalog.Subresource {
	k := rule.Of[authenticationv1.TokenRequest](rule.Kind{Group: authenticationV1, Kind: "TokenRequest",
		Plural:   "tokenrequests",
		Virtual:  true,
		Strategy: &catalog.Strategy{Default: defaultTokenRequest}})
	return rule.VirtualSubresource("token", k)
}

// tokenLife is the default lifetime of a token in seconds.
const tokenLife = int64(60 * 60)

func defaultTokenRequest(obj object.Object) {
	spec := object.Child(obj, "spec")
	if spec["expirationSeconds"] == nil {
		spec["expirationSeconds"] = tokenLife
	}
}
