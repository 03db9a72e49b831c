package bodies

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	direct "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	rounds = flag.Int("rounds", 20, "random objects of each kind and version")
	seed   = flag.Int64("seed", 1, "of the first object")
)

// eachVersion calls f for each version of each built-in kind that has a Go type with a protobuf form.
func eachVersion(t *testing.T, f func(t *testing.T, r *catalog.Resource, v *catalog.Version)) {
	t.Helper()
	for _, r := range kinds.Resources() {
		if r.Plural == "customresourcedefinitions" {
			continue // random schemas nest without end; test/oracle/crd has better ones
		}
		for _, v := range r.Versions {
			t.Run(r.Qualified()+" "+v.Name, func(t *testing.T) { f(t, r, v) })
		}
	}
}

func filler(s int64) *randfill.Filler {
	return fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(s),
		serializer.NewCodecFactory(scheme.Scheme)).NumElements(1, 3).Funcs(
		// Reading makes these pairs of fields agree.
		func(spec *corev1.PodSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.DeprecatedServiceAccount = spec.ServiceAccountName
			if seconds := spec.TerminationGracePeriodSeconds; seconds != nil && *seconds < 0 {
				*seconds = -(*seconds + 1) // in a pod it would be read as 1
			}
		},
		func(status *corev1.PodStatus, c randfill.Continue) {
			c.FillNoCustom(status)
			status.PodIPs = append([]corev1.PodIP{{IP: status.PodIP}}, status.PodIPs...)
		},
		func(spec *corev1.NodeSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.PodCIDRs = append([]string{spec.PodCIDR}, spec.PodCIDRs...)
		},
		func(b *[]byte, c randfill.Continue) { *b = []byte("x" + c.String(4)) }, // null in JSON is empty in protobuf
		func(v *certificatesv1.ExtraValue, c randfill.Continue) {
			*v = certificatesv1.ExtraValue{c.String(4)}
		},
	)
}

// random fills a fresh object of the version.
func random(t *testing.T, fill *randfill.Filler, r *catalog.Resource, v *catalog.Version, name string) runtime.Object {
	t.Helper()
	obj := fixture.Empty(t, r, v)
	fill.Fill(obj)
	if secret, ok := obj.(*corev1.Secret); ok {
		secret.StringData = nil // only ever written, into data
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetName(name)
	m.SetNamespace("")
	if r.Namespaced {
		m.SetNamespace("default")
	}
	m.SetDeletionTimestamp(nil) // the server's controllers would act on it
	m.SetFinalizers(nil)
	m.SetOwnerReferences(nil)
	m.SetGenerateName("")
	m.SetSelfLink("")
	m.SetResourceVersion("")
	m.SetManagedFields(nil)
	m.SetCreationTimestamp(metav1.NewTime(time.Unix(1700000000, 0).UTC()))
	obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(r.APIVersion(v), r.Kind))
	return obj
}

// TestRandomObjectsKeepTheirValue sends random objects of all kinds through each encoding and back, with our encoder
// and kube's decoder.
func TestRandomObjectsKeepTheirValue(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, r *catalog.Resource, v *catalog.Version) {
		fill := filler(*seed)
		for range *rounds {
			obj := random(t, fill, r, v, "x")
			doc, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			want := v.New()
			if err := json.Unmarshal(doc, want); err != nil {
				t.Fatal(err)
			}
			wantDoc, _ := json.Marshal(want)

			asProtobuf, err := codec.ToProtobuf(doc, v.New())
			if err != nil {
				t.Fatalf("%v\n%s", err, doc)
			}
			compareDocs(t, "protobuf", fromProtobuf(t, asProtobuf), wantDoc)
			back, err := codec.FromProtobuf(asProtobuf, v.New())
			if err != nil {
				t.Fatal(err)
			}
			compareDocs(t, "protobuf read by us", json.RawMessage(back), wantDoc)
			asCBOR, err := codec.ToCBOR(doc)
			if err != nil {
				t.Fatal(err)
			}
			got := v.New()
			if err := direct.Unmarshal(asCBOR, got); err != nil {
				t.Fatalf("CBOR: %v\n%s", err, doc)
			}
			compareDocs(t, "CBOR", got, wantDoc)
		}
	})
}

func compareDocs(t *testing.T, form string, got any, want []byte) {
	t.Helper()
	doc, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var is, was any
	if err := json.Unmarshal(doc, &is); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(want, &was)
	if lost := append(missing(was, is, ""), missing(is, was, "more ")...); len(lost) > 0 {
		t.Fatalf("%s: %s\n%s\nJSON has\n%s", form, strings.Join(lost, ", "), doc, want)
	}
}

// TestRandomObjectsFromTheStore writes random objects of all kinds to the store, and requests them in each form and
// version: single objects, lists, tables, metadata alone and watches. All forms have the same contents, and no stored
// field is missing.
func TestRandomObjectsFromTheStore(t *testing.T) {
	t.Parallel()
	etcdURL := freeURL(t)
	s := testserver.Start(t, func(c *bowsprit.Config) {
		c.API.CBOR, c.Etcd.ListenClientURL, c.API.RuntimeConfig = true, etcdURL, map[string]string{"api/all": "true"}
	})
	c := newCaller(t, s.RESTConfig())
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	all := kinds.Resources()
	if _, err := kinds.RuntimeConfig(map[string]string{"api/all": "true"}).Apply(all, kinds.Emulation{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Plural == "customresourcedefinitions" || r.Plural == "namespaces" {
			continue // they change the served kinds
		}
		if r.Virtual {
			continue // never in the store
		}
		t.Run(r.Qualified(), func(t *testing.T) {
			fill := filler(*seed)
			for i := range min(*rounds, 5) {
				name := fmt.Sprintf("random%d", i)
				doc, err := json.Marshal(random(t, fill, r, r.Storage, name))
				if err != nil {
					t.Fatal(err)
				}
				key := "/registry/" + r.Prefix
				if r.Namespaced {
					key += "/default"
				}
				if _, err := etcd.Put(t.Context(), key+"/"+name, string(doc)); err != nil {
					t.Fatal(err)
				}
				for _, v := range r.Versions {
					if v.Served {
						compareForms(t, c, collectionOf(r, v)+"/"+name, doc, v == r.Storage)
					}
				}
			}
			for _, v := range r.Versions {
				if v.Served {
					compareCollection(t, c, collectionOf(r, v), "random0")
				}
			}
		})
	}
}

// collectionOf returns the path of a kind's objects, in the namespace default if they are in namespaces.
func collectionOf(r *catalog.Resource, v *catalog.Version) string {
	path := "/apis/" + r.Group
	if r.Group == "" {
		path = "/api"
	}
	path += "/" + v.Name
	if r.Namespaced {
		path += "/namespaces/default"
	}
	return path + "/" + r.Plural
}

func compareForms(t *testing.T, c *caller, path string, stored []byte, sameVersion bool) {
	t.Helper()
	base := c.do("GET", path, "application/json", "", nil)
	if base.code != 200 {
		t.Errorf("%s: %d %s\n%s", path, base.code, base.body, stored)
		return
	}
	want := value(t, base.contentType, base.body)
	if sameVersion {
		var was map[string]any
		_ = json.Unmarshal(stored, &was)
		if lost := missing(was, want, ""); len(lost) > 0 {
			t.Errorf("%s: lost %s\nstored %s\nserved %s", path, strings.Join(lost, ", "), stored, base.body)
		}
	}
	for _, form := range []string{"application/yaml", protobufType, cborType} {
		a := c.do("GET", path, form, "", nil)
		if a.code != 200 {
			t.Errorf("%s as %s: %d %s", path, form, a.code, a.body)
			continue
		}
		got, want := value(t, a.contentType, a.body), want
		if form == protobufType {
			got, want = typed(t, got), typed(t, withoutClaimKinds(want))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %s:\n%v\nJSON has\n%v", path, form, got, want)
		}
	}
}

// withoutClaimKinds returns the object without the kinds of a StatefulSet's claims, which protobuf cannot store.
func withoutClaimKinds(obj map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(obj)
	if spec, ok := out["spec"].(map[string]any); ok {
		claims, _ := spec["volumeClaimTemplates"].([]any)
		for _, claim := range claims {
			delete(claim.(map[string]any), "kind")
			delete(claim.(map[string]any), "apiVersion")
		}
	}
	return out
}

// missing returns the paths of values in was that differ or are missing in is. Empty values may be missing.
func missing(was, is any, path string) (lost []string) {
	switch was := was.(type) {
	case map[string]any:
		is, _ := is.(map[string]any)
		for name, v := range was {
			lost = append(lost, missing(v, is[name], path+"."+name)...)
		}
	case []any:
		list, _ := is.([]any)
		if len(list) != len(was) {
			return []string{fmt.Sprintf("%s: %d items are %d", path, len(was), len(list))}
		}
		for i, v := range was {
			lost = append(lost, missing(v, list[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if was != nil && was != "" && was != false && was != float64(0) && !reflect.DeepEqual(was, is) {
			return []string{fmt.Sprintf("%s: %v is %v", path, was, is)}
		}
	}
	return lost
}

func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
