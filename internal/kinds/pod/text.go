// Package pod holds what all kinds share that are pods or make them: their parts, the volumes and claims, the resources
// that they ask for, and where they may run.
//
// Its texts and functions are used by the texts of the groups; see docs/design/kinds.md.
package pod

import (
	"embed"
	"sync"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

//go:embed *.txt
var files embed.FS

// Text is what the files say, made once. The texts of groups import it.
var Text = sync.OnceValue(func() *rule.Text {
	return rule.NewText(files, nil, claimFunctions(), containerFunctions(), persistentVolumeFunctions(), podFunctions(),
		replicasFunctions(), schedulingFunctions(), securityFunctions(), volumeFunctions())
})
