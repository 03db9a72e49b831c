//go:build suite

// Package suite imports what the suite that is run imports, so that go mod tidy keeps it: that has tests alone, which
// no package can import.
package suite

import (
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "sigs.k8s.io/jobset/pkg/util/testing"
	_ "sigs.k8s.io/jobset/test/util"
)
