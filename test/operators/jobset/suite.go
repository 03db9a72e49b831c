//go:build suite

// Package suite imports the dependencies of the suite, so that go mod tidy keeps them: the suite consists of tests,
// which no package can import.
package suite

import (
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "sigs.k8s.io/jobset/pkg/util/testing"
	_ "sigs.k8s.io/jobset/test/util"
)
