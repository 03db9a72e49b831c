package bodies

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// TestStoredObjectsKeepTheirBytes stores random objects of all kinds in each media type, and reads them like a
// restarted server: the responses are the same, byte for byte.
func TestStoredObjectsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	inJSON := map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}
	all := kinds.Resources()
	fresh := convert.NewStoring(all, convert.StoringOptions{})
	stored := 0
	for _, r := range all {
		if r.Plural == "customresourcedefinitions" || r.Virtual {
			continue
		}
		stored++
		t.Run(r.Qualified(), func(t *testing.T) {
			fill := filler(*seed)
			for range *rounds {
				obj := random(t, fill, r, r.Storage, "x")
				if set, ok := obj.(*appsv1.StatefulSet); ok {
					for i := range set.Spec.VolumeClaimTemplates { // as the server's defaults set them
						claim := &set.Spec.VolumeClaimTemplates[i]
						claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
					}
				}
				raw := asServed(t, r, obj)
				want := entry(t, raw)
				for _, media := range convert.MediaTypes() {
					storing := convert.NewStoring(all, convert.StoringOptions{Media: media})
					value, encoding := storing.Encode(r, raw)
					if isJSON := value[0] == '{'; isJSON != (media == codec.JSON || inJSON[r.Group]) {
						t.Errorf("%s: stored as %q", media, value)
					}
					for _, s := range []*convert.Storing{storing, fresh} { // the server itself, and another
						got, err := s.Decode(r.Prefix, value)
						if err != nil || got.Encoding != encoding {
							t.Fatalf("%s: encoding %d, not %d: %v", media, got.Encoding, encoding, err)
						}
						if e := entry(t, got.JSON); string(e.JSON()) != string(want.JSON()) {
							t.Fatalf("%s: read is\n%s\nwritten was\n%s", media, e.JSON(), want.JSON())
						}
					}
				}
			}
		})
	}
	if stored < 60 {
		t.Errorf("%d kinds", stored)
	}
}

// asServed returns the served form of an object from a client.
func asServed(t *testing.T, r *catalog.Resource, obj any) []byte {
	t.Helper()
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	typed := r.Storage.New()
	if err := json.Unmarshal(doc, typed); err != nil {
		t.Fatal(err)
	}
	if doc, err = json.Marshal(typed); err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(doc)
	if err != nil {
		t.Fatal(err)
	}
	return codec.AppendJSON(nil, v)
}

func entry(t *testing.T, raw []byte) *watchcache.Entry {
	t.Helper()
	e, err := watchcache.NewEntry("default/x", raw, 7)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
