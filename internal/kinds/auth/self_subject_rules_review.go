package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func selfSubjectRulesReviewKind() rule.Kind {
	return rule.Of[authorizationv1.SelfSubjectRulesReview](rule.Kind{
		Group: authorizationV1, Kind: "SelfSubjectRulesReview", Plural: "selfsubjectrulesreviews", ClusterScoped: true,
		Virtual: true,
	})
}
