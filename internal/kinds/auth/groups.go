package auth

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var authenticationV1 = rule.Group{Name: "authentication.k8s.io", Version: "v1", Priority: 17700, Rank: 15}

var authorizationV1 = rule.Group{Name: "authorization.k8s.io", Version: "v1", Priority: 17600, Rank: 15}
