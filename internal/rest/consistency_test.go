package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestResourceVersionMatch reads a collection at past, present and future revisions, in all modes. The table is that of
// "Resource versions", Kubernetes API concepts.
func TestResourceVersionMatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	before := s.View().Revision()
	var revisions []string // after each creation
	var all []string
	for i := range 4 {
		name := fmt.Sprint("x", i)
		send(t, s, http.MethodPost, in, widget(name, "b1"), nil)
		var l list
		send(t, s, http.MethodGet, in, "", &l)
		revisions, all = append(revisions, l.Metadata.ResourceVersion), append(all, "default/"+name)
	}
	for _, tc := range []struct {
		query string
		want  []string
		at    string // resourceVersion of the response, "" for at least the newest
	}{
		{"", all, ""},
		{"resourceVersion=0", all, ""},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", all, ""},
		{"resourceVersion=" + revisions[1], all, ""},
		{"resourceVersionMatch=NotOlderThan&resourceVersion=" + revisions[1], all, ""},
		{"resourceVersionMatch=Exact&resourceVersion=" + revisions[1], all[:2], revisions[1]},
		{"resourceVersionMatch=Exact&resourceVersion=" + fmt.Sprint(before), nil, fmt.Sprint(before)},
		{"resourceVersionMatch=Exact&fieldSelector=metadata.name%3Dx0&resourceVersion=" + revisions[1], all[:1],
			revisions[1]},
		{"resourceVersionMatch=Exact&fieldSelector=metadata.name%3Dx3&resourceVersion=" + revisions[1], nil,
			revisions[1]},
		{"limit=1", all[:1], ""},
		{"limit=1&resourceVersion=0", all, ""}, // a read from memory ignores the limit
		{"limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan", all, ""},
		{"limit=1&resourceVersion=0&labelSelector=none%3Dhere", nil, ""},
		{"limit=1&resourceVersion=0&fieldSelector=spec.bucket%3Db1", all, ""},
		{"limit=1&resourceVersion=" + revisions[1], all[:1], revisions[1]}, // without a match, a limit means Exact
		{"limit=9&resourceVersion=" + revisions[1], all[:2], revisions[1]},
		{"limit=9&resourceVersionMatch=NotOlderThan&resourceVersion=" + revisions[1], all, ""},
	} {
		var l list
		send(t, s, http.MethodGet, in+"?"+tc.query, "", &l)
		if got := l.names(); !slices.Equal(got, tc.want) || tc.at != "" && l.Metadata.ResourceVersion != tc.at ||
			tc.at == "" && l.Metadata.ResourceVersion < revisions[3] {
			t.Errorf("%s: %v at %s, want %v at %s", tc.query, got, l.Metadata.ResourceVersion, tc.want, tc.at)
		}
	}
	refused := func(query string, code int, reason metav1.StatusReason, message string) metav1.Status {
		t.Helper()
		w := ask(t, s, http.MethodGet, in+query, "")
		var st metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != code || st.Reason != reason ||
			!strings.Contains(st.Message, message) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		return st
	}
	refused("?resourceVersionMatch=Exact", 422, metav1.StatusReasonInvalid,
		"resourceVersionMatch is forbidden unless resourceVersion is provided")
	refused("?resourceVersionMatch=Exact&resourceVersion=0", 422, metav1.StatusReasonInvalid, "resourceVersionMatch")
	refused("?resourceVersionMatch=x&resourceVersion=1", 422, metav1.StatusReasonInvalid, "supported values")
	refused("?resourceVersion=x", 400, metav1.StatusReasonBadRequest, "nvalid resource version")
	refused("?continue=x", 400, metav1.StatusReasonBadRequest, "continue key is not valid")

	// A future revision: the server waits for it, and then returns an error.
	future := fmt.Sprint(s.View().Revision() + 1000)
	for _, query := range []string{"?resourceVersion=" + future, "/x0?resourceVersion=" + future,
		"?resourceVersionMatch=Exact&resourceVersion=" + future} {
		st := refused(query, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version: "+
			future+", current: ")
		if d := st.Details; d == nil || d.RetryAfterSeconds != 1 || len(d.Causes) != 1 ||
			d.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
			t.Errorf("%s: details %+v", query, d)
		}
	}

	// A compacted revision, gone from etcd and from memory: no client has read revisions[2] yet, or it would be
	// retained.
	var first, second list
	send(t, s, http.MethodGet, in+"?limit=2", "", &first)
	large := strings.Repeat("x", 250<<10)
	for i := range 80 {
		send(t, s, http.MethodPatch, in+"/x0", fmt.Sprintf(`{"spec":{"bucket":"%s%d"}}`, large, i), nil)
	}
	if err := s.store.Compact(t.Context(), s.View().Revision()); err != nil {
		t.Fatal(err)
	}
	refused("?resourceVersionMatch=Exact&resourceVersion="+revisions[2], http.StatusGone, metav1.StatusReasonExpired,
		"The resourceVersion for the provided list is too old.")
	// retained since the first page
	send(t, s, http.MethodGet, in+"?limit=2&continue="+first.Metadata.Continue, "", &second)
	if got := second.names(); !slices.Equal(got, all[2:]) ||
		second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("second page: %v at %s, want %v at %s", got, second.Metadata.ResourceVersion, all[2:],
			first.Metadata.ResourceVersion)
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":` + revisions[2] +
		`,"start":"x1\u0000"}`))
	st := refused("?limit=1&continue="+token, http.StatusGone, metav1.StatusReasonExpired,
		"The provided continue parameter is too old to display a consistent list result.")
	var rest list
	send(t, s, http.MethodGet, in+"?continue="+st.Continue, "", &rest) // continues at the newest revision
	if got := rest.names(); !slices.Equal(got, all[2:]) ||
		rest.Metadata.ResourceVersion < first.Metadata.ResourceVersion {
		t.Errorf("with the token of the error: %v at %s", got, rest.Metadata.ResourceVersion)
	}
	if w := ask(t, s, http.MethodGet, in+"?limit=1&resourceVersion=5&continue="+first.Metadata.Continue,
		""); w.Code != http.StatusBadRequest {
		t.Errorf("continue with a resourceVersion: %d %s", w.Code, w.Body)
	}
}
