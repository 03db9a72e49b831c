package extension_test

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestInProcess runs the table of client tests against kinds that are part of a whole server.
func TestInProcess(t *testing.T) {
	t.Parallel()
	kinds, err := extension.In(vessels.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	s := testserver.Start(t, func(c *bowsprit.Config) { c.Extensions = append(c.Extensions, kinds) })
	vessels.Run(t, s.RESTConfig())
}

// TestBehindBowsprit runs the table against an extension API server behind Bowsprit.
func TestBehindBowsprit(t *testing.T) {
	t.Parallel()
	front := testserver.Start(t)
	serveBehind(t, front.RESTConfig())
	vessels.Run(t, front.RESTConfig())
}

// serveBehind runs an extension API server until the test ends, and returns when the server in front lists its API.
func serveBehind(t *testing.T, front *rest.Config) *bowsprit.Server {
	t.Helper()
	server, err := extension.Server{
		Kinds: vessels.Kinds(), Front: front,
		Register: &extension.Registration{Namespace: "default", Service: "vessels", Address: "localhost"},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	vessels.WaitAvailable(t, front)
	return server
}
