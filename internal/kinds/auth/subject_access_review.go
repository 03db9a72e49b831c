package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func subjectAccessReviewKind() rule.Kind {
	return rule.Of[authorizationv1.SubjectAccessReview](rule.Kind{
		Group: authorizationV1, Kind: "SubjectAccessReview", Plural: "subjectaccessreviews", ClusterScoped: true,
		Virtual: true,
	})
}
