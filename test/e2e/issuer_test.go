package e2e

import (
	"encoding/json"
	"net/url"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// TestKeysAtAdvertisedAddress checks that pods find the keys of their tokens at the advertised address, which differs
// from the address to listen on if --advertise-address is set.
func TestKeysAtAdvertisedAddress(t *testing.T) {
	p := startServer(t, "--data-dir="+t.TempDir(), "--advertise-address=192.0.2.1")
	client := kubernetes.NewForConfigOrDie(p.config(t))
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	own, err := url.Parse(p.config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://192.0.2.1:" + own.Port() + "/openid/v1/jwks"; doc.Keys != want {
		t.Errorf("the keys are at %s, want %s", doc.Keys, want)
	}
}
