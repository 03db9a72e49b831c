package resource

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var resourceV1 = rule.Group{Name: "resource.k8s.io", Version: "v1", Priority: 16200, Rank: 21}

var resourceV1beta2 = rule.Group{Name: "resource.k8s.io", Version: "v1beta2", Priority: 16200, Rank: 15}

var resourceV1beta1 = rule.Group{Name: "resource.k8s.io", Version: older, Priority: 16200, Rank: 9}

var resourceV1alpha3 = rule.Group{Name: "resource.k8s.io", Version: "v1alpha3", Priority: 15900, Rank: 9}
