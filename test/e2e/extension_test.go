package e2e

import (
	"context"
	"testing"

	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
)

// TestExtensionBehindKubeAPIServer runs the table of client tests against an extension API server behind a real
// kube-apiserver: the table of package extension for kinds in process and behind Bowsprit.
func TestExtensionBehindKubeAPIServer(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	t.Parallel()
	kube := startFront(t)
	config := kube.config(t)
	server, err := extension.Server{
		Kinds: vessels.Kinds(), Front: config,
		Register: &extension.Registration{Namespace: "default", Service: "vessels", Address: "localhost"},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	vessels.WaitAvailable(t, config)
	vessels.Run(t, config)
}
