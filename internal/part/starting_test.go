package part_test

import (
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// Only where webhooks are registered is the time short that parts have for their writes at the start.
func TestStarting(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	within := func(h *part.Host) time.Duration {
		ctx, cancel := h.Starting(t.Context())
		defer cancel()
		deadline, _ := ctx.Deadline()
		return time.Until(deadline)
	}
	if got := within(s.Host); got < 20*time.Second {
		t.Errorf("without webhooks there are %s", got)
	}
	s.Create(catalog.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}, "",
		`{"metadata":{"name":"a"}}`)
	if got := within(s.Host); got > 5*time.Second {
		t.Errorf("with a webhook there are %s", got)
	}
}
