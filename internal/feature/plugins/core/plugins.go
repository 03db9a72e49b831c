// Package core holds the admission plugins for kinds of the core group, one file each. testdata holds their cases;
// test/oracle-builtins runs the same cases through Kubernetes' own plugins. Package plugin defines the parts of a
// plugin, and package plugins the order of the chain.
package core

import "github.com/bowsprit/bowsprit/internal/admit"

type object = admit.Object
