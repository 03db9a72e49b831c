// Package pod holds the common parts of pods and of kinds with pod templates: containers, volumes and claims,
// resources, and scheduling.
//
// The texts of the groups use its texts and functions; see docs/design/kinds.md.
package pod

import (
	"embed"
	"sync"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

//go:embed *.txt
var files embed.FS

// Text is the parsed text files, read once. The texts of groups import it.
var Text = sync.OnceValue(func() *rule.Text {
	return rule.NewText(files, nil, claimFunctions(), containerFunctions(), persistentVolumeFunctions(), podFunctions(),
		replicasFunctions(), schedulingFunctions(), securityFunctions(), volumeFunctions())
})
