package flowcontrol

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var flowcontrolV1 = rule.Group{Name: "flowcontrol.apiserver.k8s.io", Version: "v1", Priority: 16100, Rank: 21}
