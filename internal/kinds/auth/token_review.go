package auth

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func tokenReviewKind() rule.Kind {
	return rule.Of[authenticationv1.TokenReview](rule.Kind{
		Group: authenticationV1, Kind: "TokenReview", Plural: "tokenreviews", ClusterScoped: true, Virtual: true,
	})
}
