package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// fullEvent has every field set.
func fullEvent() *auditapi.Event {
	at := metav1.NewMicroTime(time.Date(2026, 11, 22, 16, 0, 0, 123456789, time.UTC))
	return &auditapi.Event{
		Level: auditapi.LevelRequestResponse, AuditID: "b9f1", Stage: auditapi.StageResponseComplete,
		RequestURI: "/api/v1/namespaces/default/configmaps?a=<b>&c", Verb: "create",
		User: authenticationv1.UserInfo{
			Username: "jane", UID: "u1", Groups: []string{"dev", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
		},
		ImpersonatedUser:       &authenticationv1.UserInfo{Username: "bob\u2028", Groups: []string{"ops"}},
		AuthenticationMetadata: &auditapi.AuthenticationMetadata{ImpersonationConstraint: "impersonate:user-info"},
		SourceIPs:              []string{"10.0.0.1", "::1"}, UserAgent: "kubectl/v1.36 \"x\"",
		ObjectRef: &auditapi.ObjectReference{
			Resource: "configmaps", Namespace: "default", Name: "cm", UID: "u2", APIGroup: "g", APIVersion: "v1",
			ResourceVersion: "7", Subresource: "status",
		},
		ResponseStatus: &metav1.Status{
			Status: "Failure", Message: "no", Reason: "Forbidden", Code: 403,
			Details: &metav1.StatusDetails{Name: "cm", Kind: "configmaps", RetryAfterSeconds: 1},
		},
		RequestObject:            document([]byte(`{"kind":"ConfigMap","data":{"a":"<&>"}}`)),
		ResponseObject:           document([]byte(`[{"op":"add"}]`)),
		RequestReceivedTimestamp: at, StageTimestamp: at,
		Annotations: map[string]string{"b": "2", "a": "1"},
	}
}

// eventsByField returns events with each field alone, with all and with none.
func eventsByField() []*auditapi.Event {
	events := []*auditapi.Event{fullEvent(), {}}
	full := reflect.ValueOf(*fullEvent())
	for i := range full.NumField() {
		var e auditapi.Event
		reflect.ValueOf(&e).Elem().Field(i).Set(full.Field(i))
		events = append(events, &e)
	}
	return events
}

// TestLogIsKubes writes events with each field alone, with all and with none, and compares with Kubernetes' library.
func TestLogIsKubes(t *testing.T) {
	t.Parallel()
	events := eventsByField()
	for format, legacy := range map[string]bool{FormatJSON: false, FormatLegacy: true} {
		for _, e := range events {
			var ours, kubes bytes.Buffer
			if ok := (&logBackend{out: &ours, legacy: legacy}).ProcessEvents(e); !ok {
				t.Fatalf("%s: event %+v was not written", format, e)
			}
			pluginlog.NewBackend(&kubes, format, auditv1.SchemeGroupVersion).ProcessEvents(e.DeepCopy())
			if ours.String() != kubes.String() {
				t.Errorf("%s:\n got %swant %s", format, ours.String(), kubes.String())
			}
		}
	}
}

// TestLegacyResponse checks that lines of text have the response code, in each mode.
func TestLegacyResponse(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{ModeBatch, ModeBlocking, ModeBlockingStrict} {
		o := options(t, "rules:\n- level: Metadata\n")
		o.Log.Format, o.Log.Mode = FormatLegacy, mode
		a := start(t, o)
		rec := a.Begin(received(t, "GET", "/api/v1/namespaces/default/secrets/s"))
		rec.RequestReceived()
		rec.ResponseStarted(http.StatusOK)
		rec.ResponseComplete(time.Now())
		stop(t, a)
		text, err := os.ReadFile(o.Log.Path)
		if err != nil {
			t.Fatal(err)
		}
		before, after, _ := strings.Cut(string(text), "\n")
		if !strings.HasSuffix(before, ` response="<deferred>"`) || !strings.HasSuffix(after, ` response="200"`+"\n") {
			t.Errorf("%s:\n%s", mode, text)
		}
	}
}

// TestEventTypes fails if a version of the library has fields that appendEvent does not handle.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[auditapi.Event](), reflect.TypeFor[auditv1.Event]()},
		{reflect.TypeFor[auditapi.ObjectReference](), reflect.TypeFor[auditv1.ObjectReference]()},
	} {
		if got, want := fieldNames(pair[0]), fieldNames(pair[1]); got != want {
			t.Errorf("fields of %s: %s, of %s: %s", pair[0], got, pair[1], want)
		}
	}
	if want := 18; reflect.TypeFor[auditapi.Event]().NumField() != want {
		t.Errorf("Event has %d fields, appendEvent knows %d", reflect.TypeFor[auditapi.Event]().NumField(), want)
	}
}

func fieldNames(t reflect.Type) string {
	names := map[string]bool{}
	for i := range t.NumField() {
		names[t.Field(i).Name] = true
	}
	return fmt.Sprint(names)
}

func BenchmarkEncode(b *testing.B) {
	e, room := metadataEvent(), make([]byte, 0, 4096)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := appendEvent(room, e, extras{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kubes", func(b *testing.B) {
		encoder := audit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion)
		b.ReportAllocs()
		for b.Loop() {
			if err := encoder.Encode(e, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// metadataEvent returns the event of a read at the level Metadata.
func metadataEvent() *auditapi.Event {
	e := fullEvent()
	e.Level, e.RequestObject, e.ResponseObject, e.ImpersonatedUser, e.AuthenticationMetadata = auditapi.LevelMetadata,
		nil, nil, nil, nil
	e.ResponseStatus = &metav1.Status{Code: 200}
	e.Annotations = map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
	return e
}

// TestUnknownStaysJSON checks an assumption of the log: documents are embedded as JSON, not as text.
func TestUnknownStaysJSON(t *testing.T) {
	t.Parallel()
	line, err := appendEvent(nil, fullEvent(), extras{})
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		RequestObject struct{ Kind string }
	}
	if err := json.Unmarshal(line, &back); err != nil || back.RequestObject.Kind != "ConfigMap" {
		t.Errorf("%s: %v", line, err)
	}
	if strings.Contains(string(line), runtime.ContentTypeJSON) {
		t.Errorf("the content type is in the log: %s", line)
	}
}
