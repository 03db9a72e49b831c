package accounts

import (
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// TestTrackingIsKept checks that the ConfigMap with the start of token tracking is restored after a deletion or without
// a valid day.
func TestTrackingIsKept(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	round := func() {
		t.Helper()
		s.CatchUp()
		if err := makeTracking(t.Context(), s.Verbs); err != nil {
			t.Fatal(err)
		}
	}
	round()
	s.CatchUp()
	before := s.View.Revision()
	round()
	if now := s.View.Revision(); now != before {
		t.Errorf("nothing was missing, and %d writes were made", now-before)
	}
	tracking := func() string { return s.Stored("configmaps", "kube-system", trackingConfigMap) }
	since := `"data":{"since":"` + s.Time.UTC().Format(time.DateOnly) + `"}`
	s.Delete(configMapsResource, "kube-system", trackingConfigMap)
	round()
	s.Has(tracking(), since)
	s.Delete(configMapsResource, "kube-system", trackingConfigMap)
	s.Create(configMapsResource, "kube-system", `{"metadata":{"name":"`+trackingConfigMap+
		`"},"data":{"since":"some day"}}`)
	round()
	s.Has(tracking(), since)
}
