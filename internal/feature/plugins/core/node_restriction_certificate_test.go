package core_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// TestCertificateOfNothing checks the error for a kubelet's certificate request that names a missing object. As in
// Kubernetes it is a 500 and not a 404, after which the kubelet retries.
func TestCertificateOfNothing(t *testing.T) {
	t.Parallel()
	_, view := plugintest.Open(t, []json.RawMessage{
		json.RawMessage(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"1"}}`),
		json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lost","namespace":"default","uid":"2"},
			"spec":{"nodeName":"n1","serviceAccountName":"gone"}}`),
	})
	p := plugintest.Find(t, "NodeRestriction", plugin.Config{View: view})
	for _, tc := range []struct{ node, pod, want string }{
		{"n2", "lost", `while retrieving node "n2" named in the PodCertificateRequest: node "n2" not found`},
		{"n1", "nope", `while retrieving pod "default/nope" named in the PodCertificateRequest: pod "nope" not found`},
		{"n1", "lost", `while retrieving service account "default/gone" named in the PodCertificateRequest: ` +
			`serviceaccount "gone" not found`},
	} {
		a := plugintest.Attributes(t, admit.Create, "", plugintest.Tree(t, []byte(
			`{"apiVersion":"certificates.k8s.io/v1beta1","kind":"PodCertificateRequest",
			"metadata":{"name":"x","namespace":"default"},"spec":{"nodeName":"`+tc.node+`","nodeUID":"1","podName":"`+tc.pod+
				`","podUID":"2","serviceAccountName":"gone"}}`)), nil)
		a.User = &user.DefaultInfo{Name: "system:node:" + tc.node, Groups: []string{user.NodesGroup}}
		err := p.Mutate(t.Context(), a)
		if err == nil {
			t.Fatalf("%s on %s is admitted", tc.pod, tc.node)
		}
		if s := codec.StatusOf(err); s.Code != http.StatusInternalServerError || s.Message != tc.want {
			t.Errorf("%s on %s: %d %s", tc.pod, tc.node, s.Code, s.Message)
		}
	}
}
