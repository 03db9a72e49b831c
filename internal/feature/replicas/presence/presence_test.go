package presence_test

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// A kube-apiserver that shares the etcd stores its keys as protobuf.
func TestStoredByKubeAPIServer(t *testing.T) {
	t.Parallel()
	//lint:ignore SA1019 the stored format
	endpoints := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{
		{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.9"}}, Ports: []corev1.EndpointPort{{Port: 6443}}},
	}}
	raw, err := endpoints.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}, Raw: raw,
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	storing := convert.NewStoring(presence.Stored(kinds.Resources()), convert.StoringOptions{Media: codec.Protobuf})
	for _, prefix := range []string{presence.Endpoints, presence.Peers} {
		got, err := storing.Decode(prefix, append([]byte("k8s\x00"), envelope...))
		if err != nil || !bytes.Contains(got.JSON, []byte(`"ip":"192.0.2.9"`)) {
			t.Errorf("%s: %v %s", prefix, err, got.JSON)
		}
	}
}

// TestKey checks that a key is visible to all servers that share the etcd until it is withdrawn.
func TestKey(t *testing.T) {
	t.Parallel()
	etcd := memory.New()
	shared := parttest.OpenStore(t, store.Config{Etcd: etcd.Shared()})
	one, another := parttest.Start(t, shared),
		parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: etcd.Shared()}))
	key := presence.Key{View: one.View, Store: shared, Prefix: presence.Peers, Name: "a"}
	for range 2 { // written, and renewed
		if err := key.Sign(t.Context(), object.Object{"l": "v"}, object.Object{}); err != nil {
			t.Fatal(err)
		}
		another.Has(another.Stored(presence.Peers, "", "a"), `"labels":{"l":"v"}`, `"subsets":[{}]`)
	}
	one.CatchUp()
	as := convert.NewStoring(presence.Stored(kinds.Resources()), convert.StoringOptions{Media: codec.Protobuf})
	inProtobuf := presence.Key{View: one.View, Store: shared, Storing: as, Prefix: presence.Endpoints, Name: "b"}
	if err := inProtobuf.Sign(t.Context(), nil, object.Object{}); err != nil {
		t.Fatal(err)
	}
	if r, err := shared.Get(t.Context(), presence.Endpoints+"/b"); err != nil || !codec.InEnvelope(r.Value) {
		t.Errorf("not in protobuf: %q %v", r.Value, err)
	}
	if was, err := key.Withdraw(t.Context()); !was || err != nil {
		t.Errorf("%v %v", was, err)
	}
	if left := another.Stored(presence.Peers, "", "a"); left != "" {
		t.Errorf("left: %s", left)
	}
}
