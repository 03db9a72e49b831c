package kinds

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// reviewKinds are questions: a POST is answered and nothing is stored. Package review has the answers.
func reviewKinds() []kind {
	return []kind{
		selfSubjectReviewKind(),
		tokenReviewKind(),
		localSubjectAccessReviewKind(),
		selfSubjectAccessReviewKind(),
		selfSubjectRulesReviewKind(),
		subjectAccessReviewKind(),
	}
}

func selfSubjectReviewKind() kind {
	return of[authenticationv1.SelfSubjectReview](kind{
		group: authenticationV1, kind: "SelfSubjectReview", plural: "selfsubjectreviews", clusterScoped: true,
		virtual: true,
	})
}

func tokenReviewKind() kind {
	return of[authenticationv1.TokenReview](kind{
		group: authenticationV1, kind: "TokenReview", plural: "tokenreviews", clusterScoped: true, virtual: true,
	})
}

func localSubjectAccessReviewKind() kind {
	return of[authorizationv1.LocalSubjectAccessReview](kind{
		group: authorizationV1, kind: "LocalSubjectAccessReview", plural: "localsubjectaccessreviews", virtual: true,
	})
}

func selfSubjectAccessReviewKind() kind {
	return of[authorizationv1.SelfSubjectAccessReview](kind{
		group: authorizationV1, kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews",
		clusterScoped: true, virtual: true,
	})
}

func selfSubjectRulesReviewKind() kind {
	return of[authorizationv1.SelfSubjectRulesReview](kind{
		group: authorizationV1, kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", clusterScoped: true,
		virtual: true,
	})
}

func subjectAccessReviewKind() kind {
	return of[authorizationv1.SubjectAccessReview](kind{
		group: authorizationV1, kind: "SubjectAccessReview", plural: "subjectaccessreviews", clusterScoped: true,
		virtual: true,
	})
}

// tokenSubresource is serviceaccounts/token.
func tokenSubresource() catalog.Subresource {
	k := of[authenticationv1.TokenRequest](kind{group: authenticationV1, kind: "TokenRequest", plural: "tokenrequests",
		virtual: true,
		rules:   &catalog.Strategy{Default: defaultTokenRequest}})
	return virtualSubresource("token", k)
}

// virtualSubresource is a subresource that takes a POST of k's kind and stores nothing.
func virtualSubresource(name string, k kind) catalog.Subresource {
	r := k.resource()
	r.Namespaced = true
	return catalog.Subresource{
		Name: name, Kind: metav1.GroupVersionKind{Group: r.Group, Version: r.Storage.Name, Kind: r.Kind},
		Verbs: []string{"create"}, Virtual: r,
	}
}

// tokenLife is how many seconds a token lives whose request does not say.
const tokenLife = int64(60 * 60)

func defaultTokenRequest(obj catalog.Object) {
	spec := child(obj, "spec")
	if spec["expirationSeconds"] == nil {
		spec["expirationSeconds"] = tokenLife
	}
}
