package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func localSubjectAccessReviewKind() rule.Kind {
	return rule.Of[authorizationv1.LocalSubjectAccessReview](rule.Kind{
		Group: authorizationV1, Kind: "LocalSubjectAccessReview", Plural: "localsubjectaccessreviews", Virtual: true,
	})
}
