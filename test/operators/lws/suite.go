//go:build suite

// Package suite imports the dependencies of the suite, so that go mod tidy keeps them: the suite consists of tests,
// which no package can import.
package suite

import (
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "sigs.k8s.io/lws/client-go/clientset/versioned/scheme"
	_ "sigs.k8s.io/lws/pkg/schedulerprovider"
	_ "sigs.k8s.io/lws/test/testutils"
	_ "sigs.k8s.io/lws/test/wrappers"
	_ "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)
