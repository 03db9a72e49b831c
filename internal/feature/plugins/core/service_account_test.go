package core_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// TestPodWaitsForItsAccount checks that a pod written before the default account of its namespace waits for it.
func TestPodWaitsForItsAccount(t *testing.T) {
	t.Parallel()
	s, view := plugintest.Open(t, nil)
	p := plugintest.Find(t, "ServiceAccount",
		plugin.Config{View: view, NewSuffix: func() string { return "abcde" }, AccountPatience: time.Hour})
	a := plugintest.Attributes(t, admit.Create, "",
		plugintest.Tree(t, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns"},"spec":{}}`)), nil)
	admitted := make(chan error, 1)
	go func() { admitted <- p.Mutate(t.Context(), a) }()
	for _, namespace := range []string{"other", "ns"} {
		account, err := json.Marshal(admit.Object{
			"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": admit.Object{"name": "default", "namespace": namespace},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "serviceaccounts/"+namespace+"/default", account); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
	if got := catalog.Text(a.Object, "spec", "serviceAccountName"); got != "default" {
		t.Errorf("account %q", got)
	}
}
