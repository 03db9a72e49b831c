package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/testserver"
)

const (
	revisionsPath = "/apis/apps/v1/namespaces/default/controllerrevisions"
	// A document as its owner writes it, as JSON shows it, and as JSON without an order of keys.
	documentSent    = `{"kind": "foo", "apiVersion": "example.com/v1", "n": 1.0}`
	documentCompact = `{"kind":"foo","apiVersion":"example.com/v1","n":1.0}`
	documentSorted  = `{"apiVersion":"example.com/v1","kind":"foo","n":1}`
)

// documents is a server with objects that contain documents.
type documents struct {
	viewer
	kube kubernetes.Interface
	stop func() error
}

func startDocuments(t *testing.T, dir, media string) documents {
	t.Helper()
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.DataDir, c.Etcd.StorageMediaType = dir, media
	})
	config := rest.CopyConfig(server.RESTConfig())
	plain := viewer{T: t, http: client(t, config), url: server.URL()}
	config.ContentType, config.AcceptContentTypes = codec.Protobuf, codec.Protobuf
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return documents{plain, kube, server.Stop}
}

// text returns the answer to a request in JSON.
func (d documents) text(method, path, contentType, body string) string {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := d.http.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		d.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, text, err)
	}
	return string(text)
}

// shows checks that all reads return the revision's data, and returns its resourceVersion.
func (d documents) shows(name, inProtobuf, inJSON string) string {
	d.Helper()
	ctx := d.Context()
	revisions := d.kube.AppsV1().ControllerRevisions("default")
	got, err := revisions.Get(ctx, name, metav1.GetOptions{})
	if err != nil || string(got.Data.Raw) != inProtobuf {
		d.Errorf("GET in protobuf: %s %v", got.Data.Raw, err)
	}
	list, err := revisions.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) != 1 || string(list.Items[0].Data.Raw) != inProtobuf {
		d.Errorf("list in protobuf: %+v %v", list, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := revisions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		d.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); string(e.Object.(*appsv1.ControllerRevision).Data.Raw) != inProtobuf {
		d.Errorf("watch in protobuf: %+v", e)
	}
	for _, path := range []string{"/" + name, "?fieldSelector=metadata.name%3D" + name} {
		if text := d.text("GET", revisionsPath+path, "", ""); !strings.Contains(text, `"data":`+inJSON+`,`) {
			d.Errorf("%s in JSON: %s", path, text)
		}
	}
	return got.ResourceVersion
}

// TestDocumentsKeepTheirBytes checks that a server that stores protobuf keeps the bytes of documents within objects,
// and that a server that stores JSON keeps the order of their keys, as kube-apiserver does.
func TestDocumentsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ media, want, changed string }{
		{codec.Protobuf, documentSent, `{"n": 1.0, "kind": "foo", "apiVersion": "example.com/v1"}`},
		{codec.JSON, documentCompact, `{"n":1.0,"kind":"foo","apiVersion":"example.com/v1"}`},
		{codec.YAML, documentSorted, documentSorted},
	} {
		t.Run(test.media, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := startDocuments(t, dir, test.media)
			inJSON := strings.ReplaceAll(test.want, " ", "")
			made := d.create("a", documentSent)
			if string(made.Data.Raw) != test.want {
				t.Errorf("creation in protobuf: %s", made.Data.Raw)
			}
			first := d.shows("a", test.want, inJSON)
			text := d.text("POST", revisionsPath, codec.JSON,
				`{ "metadata": {"name": "b"}, "revision": 1, "data": `+documentSent+` }`)
			if !strings.Contains(text, `"data":`+inJSON+`,`) {
				t.Errorf("creation in JSON: %s", text)
			}
			d.shows("b", test.want, inJSON)
			d.keeps(made, first, test.want)
			d.changes(made, test.changed)
			d.claims(test.want)
			last := d.shows("a", test.changed, strings.ReplaceAll(test.changed, " ", ""))
			if err := d.stop(); err != nil {
				t.Fatal(err)
			}
			d = startDocuments(t, dir, test.media)
			if again := d.shows("a", test.changed, strings.ReplaceAll(test.changed, " ", "")); again != last {
				t.Errorf("revision %s, not %s", again, last)
			}
			d.shows("b", test.want, inJSON)
		})
	}
}

func (d documents) create(name, data string) *appsv1.ControllerRevision {
	d.Helper()
	made, err := d.kube.AppsV1().ControllerRevisions("default").Create(d.Context(), &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/stay"}},
		Data:       runtime.RawExtension{Raw: []byte(data)}, Revision: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		d.Fatal(err)
	}
	return made
}

// keeps makes writes without changes, and writes of other fields.
func (d documents) keeps(made *appsv1.ControllerRevision, revision, want string) {
	d.Helper()
	revisions := d.kube.AppsV1().ControllerRevisions("default")
	same := made.DeepCopy()
	same.Data.Raw = []byte(documentSent)
	got, err := revisions.Update(d.Context(), same, metav1.UpdateOptions{})
	if err != nil || got.ResourceVersion != revision || string(got.Data.Raw) != want {
		d.Errorf("an update that changes nothing: %s %s %v", got.ResourceVersion, got.Data.Raw, err)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"metadata":{"labels":{"a":"b"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":{"c":"d"}}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/annotations","value":{"e":"f"}}]`,
		types.ApplyPatchType: `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a","labels":` +
			`{"g":"h"}},"revision":1}`,
	} {
		o := metav1.PatchOptions{}
		if kind == types.ApplyPatchType {
			o.FieldManager = "test"
		}
		got, err := revisions.Patch(d.Context(), "a", kind, []byte(patch), o)
		if err != nil || string(got.Data.Raw) != want {
			d.Errorf("%s: %s %v", kind, got.Data.Raw, err)
		}
	}
	got, err = revisions.Patch(d.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"i":"j"}}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || string(got.Data.Raw) != want {
		d.Errorf("dry run: %s %v", got.Data.Raw, err)
	}
	if err := revisions.Delete(d.Context(), "a", metav1.DeleteOptions{}); err != nil {
		d.Error(err)
	}
	if got, err = revisions.Get(d.Context(), "a", metav1.GetOptions{}); err != nil || got.DeletionTimestamp == nil ||
		string(got.Data.Raw) != want {
		d.Errorf("being deleted: %s %v", got.Data.Raw, err)
	}
}

// changes writes the same document in other words.
func (d documents) changes(made *appsv1.ControllerRevision, want string) {
	d.Helper()
	revisions := d.kube.AppsV1().ControllerRevisions("default")
	now, err := revisions.Get(d.Context(), made.Name, metav1.GetOptions{})
	if err != nil {
		d.Fatal(err)
	}
	now.Data.Raw = []byte(`{"n": 1.0, "kind": "foo", "apiVersion": "example.com/v1"}`)
	got, err := revisions.Update(d.Context(), now, metav1.UpdateOptions{})
	same := got.ResourceVersion == now.ResourceVersion
	if err != nil || string(got.Data.Raw) != want || same != (want == documentSorted) {
		d.Errorf("other words: %s %v", got.Data.Raw, err)
	}
}

// claims writes spec and status of a claim, which take turns.
func (d documents) claims(want string) {
	d.Helper()
	claims := d.kube.ResourceV1().ResourceClaims("default")
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "class.example.com",
	}}}
	claim.Spec.Devices.Config = make([]resourcev1.DeviceClaimConfiguration, 1)
	claim.Spec.Devices.Config[0].Opaque = &resourcev1.OpaqueDeviceConfiguration{
		Driver: "driver.example.com", Parameters: runtime.RawExtension{Raw: []byte(documentSent)},
	}
	claim, err := claims.Create(d.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		d.Fatal(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "r", Driver: "driver.example.com", Pool: "p", Device: "d"},
		},
	}}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{
		Driver: "driver.example.com", Pool: "p", Device: "d", Data: &runtime.RawExtension{Raw: []byte(documentSent)},
	}}
	claim.Spec.Devices.Config[0].Opaque.Parameters.Raw = []byte(documentSorted) // an unrelated part of the object
	claim, err = claims.UpdateStatus(d.Context(), claim, metav1.UpdateOptions{})
	if err != nil {
		d.Fatal(err)
	}
	check := func(claim *resourcev1.ResourceClaim) {
		d.Helper()
		if len(claim.Status.Devices) == 0 || string(claim.Status.Devices[0].Data.Raw) != want ||
			string(claim.Spec.Devices.Config[0].Opaque.Parameters.Raw) != want {
			d.Errorf("claim: %+v", claim)
		}
	}
	check(claim)
	claim.Labels = map[string]string{"a": "b"}
	claim.Status.Devices[0].Data.Raw = []byte(documentSorted)
	if claim, err = claims.Update(d.Context(), claim, metav1.UpdateOptions{}); err != nil {
		d.Fatal(err)
	}
	check(claim)
	beta, err := d.kube.ResourceV1beta1().ResourceClaims("default").Get(d.Context(), "c", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // not served
	case err != nil:
		d.Error(err)
	case string(beta.Spec.Devices.Config[0].Opaque.Parameters.Raw) != want:
		d.Errorf("v1beta1: %s", beta.Spec.Devices.Config[0].Opaque.Parameters.Raw)
	}
}
