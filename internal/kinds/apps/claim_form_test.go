package apps

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestClaimForm reads StatefulSets as another server has stored them: claims have their kind, as they were written.
func TestClaimForm(t *testing.T) {
	t.Parallel()
	const head = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s"},"spec":{"selector":null,` +
		`"serviceName":"s","template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}`
	const with = head + `,"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":` +
		`{"name":"c"},"spec":{"resources":{}},"status":{}}]},"status":{"availableReplicas":0,"replicas":0}}`
	const without = head + `},"status":{"availableReplicas":0,"replicas":0}}`
	for _, media := range convert.MediaTypes() {
		for _, doc := range []string{with, without} {
			for _, r := range Kinds() {
				if r.Plural != "statefulsets" {
					continue
				}
				value, _ := convert.NewStoring(nil, convert.StoringOptions{Media: media}).Encode(r, []byte(doc))
				if (value[0] == '{') != (media == codec.JSON) {
					t.Errorf("%s: stored as %q", media, value)
				}
				got, err := convert.NewStoring(Kinds(), convert.StoringOptions{}).Decode(r.Prefix, value)
				if err != nil || string(got.JSON) != doc {
					t.Errorf("%s: read as\n%s\nwant\n%s (%v)", media, got.JSON, doc, err)
				}
			}
		}
	}
}
