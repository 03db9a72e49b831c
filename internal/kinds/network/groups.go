package network

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var networkingV1 = rule.Group{Name: "networking.k8s.io", Version: "v1", Priority: 17200, Rank: 15}

var networkingV1beta1 = rule.Group{Name: "networking.k8s.io", Version: "v1beta1", Priority: 17200, Rank: 9}
