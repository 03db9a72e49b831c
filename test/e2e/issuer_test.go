package e2e

import (
	"encoding/json"
	"net/url"
	"testing"

	"k8s.io/client-go/kubernetes"
)

// Pods find the keys that prove their tokens where the server says: at the address that others reach, which is not the
// one on which it listens if --advertise-address names another.
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
