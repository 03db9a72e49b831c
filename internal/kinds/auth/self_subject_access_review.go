package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func selfSubjectAccessReviewKind() rule.Kind {
	return rule.Of[authorizationv1.SelfSubjectAccessReview](rule.Kind{
		Group: authorizationV1, Kind: "SelfSubjectAccessReview", Plural: "selfsubjectaccessreviews",
		ClusterScoped: true, Virtual: true,
	})
}
