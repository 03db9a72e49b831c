package batch

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var batchV1 = rule.Group{Name: "batch", Version: "v1", Priority: 17400, Rank: 15}
