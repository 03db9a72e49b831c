package bootstraptoken

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/token"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

const url = "https://192.0.2.1:6443"

// joinable is a server with the ConfigMap cluster-info.
func joinable(t *testing.T) *parttest.Server {
	t.Helper()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	certificates, err := pki.Open(pki.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Certificates = certificates
	publishes(s, new(published), url, true)
	return s
}

func publishes(s *parttest.Server, last *published, url string, starting bool) {
	s.Helper()
	s.CatchUp()
	if err := last.publish(s.Context(), s.Host, url, starting); err != nil {
		s.Fatal(err)
	}
	s.CatchUp()
}

func createToken(s *parttest.Server, t token.BootstrapToken) {
	s.Helper()
	text, err := json.Marshal(t.AsSecret())
	if err != nil {
		s.Fatal(err)
	}
	s.Create(secrets, metav1.NamespaceSystem, string(text))
}

func info(s *parttest.Server) map[string]string {
	s.Helper()
	var m corev1.ConfigMap
	if err := json.Unmarshal([]byte(s.Stored("configmaps", metav1.NamespacePublic, clusterInfo)), &m); err != nil {
		s.Fatal(err)
	}
	return m.Data
}

// TestSigner checks that the ConfigMap has exactly the signatures of the valid signing tokens.
func TestSigner(t *testing.T) {
	t.Parallel()
	s := joinable(t)
	signing := []string{"signing"}
	one := token.BootstrapToken{
		ID: "aaaaaa", Secret: "0123456789abcdef", Usages: signing, Expires: s.Time.Add(time.Hour),
	}
	two := token.BootstrapToken{ID: "bbbbbb", Secret: "0123456789abcdef", Usages: []string{"signing", "authentication"}}
	createToken(s, one)
	createToken(s, two)
	createToken(s, token.BootstrapToken{ID: "cccccc", Secret: "0123456789abcdef", Usages: []string{"authentication"}})
	createToken(s, token.BootstrapToken{ID: "dddddd", Secret: "0123456789abcdef", Usages: signing, Expires: s.Time})
	work := &signer{s.Host}
	if wait := s.Does(work, ""); wait != time.Hour {
		t.Errorf("looks again after %s, when the first token expires after 1h", wait)
	}
	data := info(s)
	if len(data) != 3 || data["jws-kubeconfig-aaaaaa"] != one.Sign(data["kubeconfig"]) ||
		data["jws-kubeconfig-bbbbbb"] != two.Sign(data["kubeconfig"]) {
		t.Errorf("the ConfigMap has %v", data)
	}
	before := s.View.Revision()
	s.Does(work, "")
	s.CatchUp()
	if now := s.View.Revision(); now != before {
		t.Errorf("nothing has changed, and %d writes were made", now-before)
	}
	s.Time = s.Time.Add(time.Hour)
	s.Does(work, "")
	s.Delete(secrets, metav1.NamespaceSystem, token.BootstrapNamePrefix+"bbbbbb")
	s.Does(work, "")
	if left := slices.Collect(maps.Keys(info(s))); len(left) != 1 {
		t.Errorf("no token signs any more, and there is %v", left)
	}
}

// TestCleaner checks that a token is deleted when it expires, and at once if its expiration is unreadable.
func TestCleaner(t *testing.T) {
	t.Parallel()
	s := joinable(t)
	good := token.BootstrapToken{ID: "aaaaaa", Secret: "0123456789abcdef", Expires: s.Time.Add(time.Minute)}
	createToken(s, good)
	createToken(s, token.BootstrapToken{ID: "bbbbbb", Secret: "0123456789abcdef"})
	wrong := token.BootstrapToken{ID: "cccccc", Secret: "0123456789abcdef", Expires: s.Time}.AsSecret()
	wrong.Data["expiration"] = []byte("tomorrow")
	text, err := json.Marshal(wrong)
	if err != nil {
		t.Fatal(err)
	}
	s.Create(secrets, metav1.NamespaceSystem, string(text))
	s.Create(secrets, metav1.NamespaceSystem,
		`{"metadata":{"name":"bootstrap-token-dddddd"},"stringData":{"expiration":"2000-01-01T00:00:00Z"}}`)
	work := &cleaner{s.Host}
	names := func() (left []string) {
		for _, id := range []string{"aaaaaa", "bbbbbb", "cccccc", "dddddd"} {
			if s.Stored("secrets", metav1.NamespaceSystem, token.BootstrapNamePrefix+id) != "" {
				left = append(left, id)
			}
		}
		return left
	}
	round := func() (wait time.Duration) {
		for _, id := range names() {
			wait = max(wait, s.Does(work, token.BootstrapNamePrefix+id))
		}
		return wait
	}
	if wait := round(); wait != time.Minute {
		t.Errorf("looks again after %s, when a token expires after a minute", wait)
	}
	if left := names(); !slices.Equal(left, []string{"aaaaaa", "bbbbbb", "dddddd"}) {
		t.Errorf("before the time there is %v", left)
	}
	s.Time = s.Time.Add(time.Minute)
	round()
	if left := names(); !slices.Equal(left, []string{"bbbbbb", "dddddd"}) {
		t.Errorf("after it there is %v: one does not expire, one is no token", left)
	}
}

// The ConfigMap follows the server, unless another client has written the kubeconfig or another server has started.
func TestPublish(t *testing.T) {
	t.Parallel()
	s := joinable(t)
	var last published
	s.Has(info(s)["kubeconfig"], "server: "+url+"\n", "certificate-authority-data: ", `name: ""`)
	s.Has(s.Stored("roles", metav1.NamespacePublic, readRole), `"resourceNames":["cluster-info"]`)
	s.Has(s.Stored("rolebindings", metav1.NamespacePublic, readRole), `"name":"system:anonymous"`)
	before := s.View.Revision()
	for range 2 { // the second time it is not even looked up
		publishes(s, &last, url, false)
	}
	if now := s.View.Revision(); now != before {
		t.Errorf("all was there, and %d writes were made", now-before)
	}
	s.Delete(configMaps, metav1.NamespacePublic, clusterInfo)
	publishes(s, &last, url, false)
	s.Has(info(s)["kubeconfig"], url)
	other := "https://192.0.2.2:6443"
	publishes(s, &last, other, false)
	s.Has(info(s)["kubeconfig"], url)
	publishes(s, &last, other, true)
	s.Has(info(s)["kubeconfig"], other)
	certificates, err := pki.Open(pki.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Certificates = certificates
	old := info(s)["kubeconfig"]
	publishes(s, &last, other, false)
	if info(s)["kubeconfig"] == old {
		t.Error("another authority, and the same kubeconfig")
	}
	call := s.Call(configMaps, metav1.NamespacePublic, clusterInfo)
	_, err = s.Verbs.Update(t.Context(), call, metav1.UpdateOptions{FieldManager: "kubectl"},
		func(obj object.Object) (object.Object, error) {
			object.Child(obj, "data")["kubeconfig"] = "mine"
			return obj, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	publishes(s, &last, url, true)
	if got := info(s)["kubeconfig"]; got != "mine" {
		t.Errorf("what an administrator has written became %s", got)
	}
}
