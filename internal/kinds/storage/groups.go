package storage

import (
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

var storageV1 = rule.Group{Name: "storage.k8s.io", Version: "v1", Priority: 16800, Rank: 15}
