package apps

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var appsV1 = rule.Group{Name: "apps", Version: "v1", Priority: 17800, Rank: 15}
