package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // parttest's clock

// authority returns a certificate with the given end, in PEM.
func authority(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: end.Add(-time.Hour),
		NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestMerge(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	a, b, proxies := authority(t, later), authority(t, later), authority(t, later)
	ended, ending := authority(t, now.Add(-grace)), authority(t, now.Add(time.Second-grace))
	for _, tc := range []struct {
		name     string
		there    map[string]string
		required information
		want     map[string]string
	}{
		{"nothing", nil, information{}, map[string]string{}},
		{"clients only", nil, information{clientCA: []byte(a), headers: Headers{Username: []string{"X-Remote-User"}}},
			map[string]string{keyClientCA: a}},
		{"all of it", nil, information{[]byte(a), []byte(proxies), Headers{
			[]string{"X-Remote-User"}, []string{"X-Remote-Uid"}, []string{"X-Remote-Group"},
			[]string{"X-Remote-Extra-"}, []string{"front", "back"},
		}}, map[string]string{
			keyClientCA: a, keyProxyCA: proxies, keyUsername: `["X-Remote-User"]`, keyUID: `["X-Remote-Uid"]`,
			keyGroup: `["X-Remote-Group"]`, keyExtraPrefixes: `["X-Remote-Extra-"]`,
			keyAllowedNames: `["front","back"]`,
		}},
		{"of several servers", map[string]string{
			keyClientCA: a, keyProxyCA: proxies, keyUsername: `["A"]`, keyGroup: `["G"]`, keyExtraPrefixes: "[]",
			keyAllowedNames: `["front"]`,
		}, information{[]byte(b + a), []byte(proxies), Headers{Username: []string{"B", "A"}}}, map[string]string{
			keyClientCA: a + b, keyProxyCA: proxies, keyUsername: `["A","B"]`, keyGroup: `["G"]`,
			keyExtraPrefixes: "[]", keyAllowedNames: `["front"]`,
		}},
		{"expired", map[string]string{keyClientCA: ended + ending}, information{clientCA: []byte(a)},
			map[string]string{keyClientCA: ending + a}},
		{"not readable", map[string]string{keyClientCA: "x", keyUsername: "x", keyProxyCA: "x", "mine": "x"},
			information{clientCA: []byte(a)}, map[string]string{keyClientCA: a}},
	} {
		if got := tc.required.merge(parse(tc.there), now).data(); !maps.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestSync checks that the ConfigMap is created, repaired, and left alone when it is correct.
func TestSync(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(), store.Config{Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := parttest.Start(t, st)
	a, b := authority(t, now.Add(time.Hour)), authority(t, now.Add(2*time.Hour))
	k := publisher{verbs: s.Verbs, required: information{clientCA: []byte(a)}}
	sync := func() (data map[string]string, version string) {
		t.Helper()
		if err := k.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held corev1.ConfigMap
		entry := s.View.Collection(ref.ConfigMaps.Prefix).Snapshot().Get(namespace, name)
		if entry == nil {
			t.Fatal("there is none")
		}
		if err := json.Unmarshal(entry.JSON(), &held); err != nil {
			t.Fatal(err)
		}
		return held.Data, held.ResourceVersion
	}
	data, first := sync()
	if data[keyClientCA] != a {
		t.Errorf("made with %v", data)
	}
	if _, second := sync(); second != first {
		t.Error("written although nothing had changed")
	}
	k.required.clientCA = []byte(b)
	if data, _ := sync(); data[keyClientCA] != a+b {
		t.Errorf("with another authority: %v", data)
	}
	call, err := s.Verbs.Call(ref.ConfigMaps.GroupResource(), namespace, name, verb.ServerUser())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Verbs.Update(t.Context(), call, metav1.UpdateOptions{}, func(obj object.Object) (object.Object, error) {
		obj["data"] = object.Object{"client-ca-file": "", "requestheader-username-headers": `["X"]`}
		return obj, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.View.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, _ := sync(); len(data) != 1 || data[keyClientCA] != b {
		t.Errorf("after a change: %v", data)
	}
	s.Time = now.Add(90 * time.Minute)
	k.required.clientCA = []byte(a)
	if data, _ := sync(); data[keyClientCA] != b {
		t.Errorf("after the end of one: %v", data)
	}
}
