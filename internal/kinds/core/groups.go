package core

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var coreV1 = rule.Group{Name: "", Version: "v1", Priority: 18000, Rank: 1}
