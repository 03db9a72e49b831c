package auth

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func selfSubjectReviewKind() rule.Kind {
	return rule.Of[authenticationv1.SelfSubjectReview](rule.Kind{
		Group: authenticationV1, Kind: "SelfSubjectReview", Plural: "selfsubjectreviews", ClusterScoped: true,
		Virtual: true,
	})
}
