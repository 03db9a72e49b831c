package node

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

var objects = map[string]string{
	"pods/n/a": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"node1",` +
		`"containers":[{"name":"c","env":[{"name":"e","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}]}],` +
		`"serviceAccountName":"sa","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"claim"}}]}}`,
	"pods/n/mirror": `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},` +
		`"name":"mirror","namespace":"n"},"spec":{"nodeName":"node2","serviceAccountName":"sa"}}`,
	"podcertificaterequests/n/pcr": `{"apiVersion":"certificates.k8s.io/v1beta1","kind":"PodCertificateRequest",` +
		`"metadata":{"name":"pcr","namespace":"n"},"spec":{"nodeName":"node1"}}`,
	"persistentvolumes/pv": `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{` +
		`"claimRef":{"name":"claim","namespace":"n"},` +
		`"csi":{"driver":"d","volumeHandle":"h","nodeStageSecretRef":{"name":"stage","namespace":"m"}}}}`,
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	for key, text := range objects {
		if _, err := st.Create(t.Context(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	view := watchcache.New(st, watchcache.Options{})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	const unrelated = "no relationship found between node 'node2' and this object"
	for _, tc := range []struct{ node, attrs, want, fields string }{
		{node: "node1", attrs: "get secrets n/s", want: "yes"},
		{node: "node2", attrs: "get secrets n/s", want: unrelated},
		{node: "node1", attrs: "list secrets n/", want: "No Object name found"},
		{node: "node1", attrs: "delete secrets n/s", want: "can only read resources of this type"},
		{node: "node1", attrs: "get secrets m/stage", want: "yes"},
		{node: "node2", attrs: "get secrets m/stage", want: unrelated},
		{node: "node1", attrs: "get persistentvolumes /pv", want: "yes"},
		{node: "node2", attrs: "get persistentvolumes /pv", want: unrelated},
		{node: "node1", attrs: "update persistentvolumeclaims/status n/claim", want: "yes"},
		{node: "node1", attrs: "create serviceaccounts/token n/sa", want: "yes"},
		{node: "node2", attrs: "create serviceaccounts/token n/sa", want: unrelated},
		{node: "node2", attrs: "get pods n/mirror", want: "yes"},
		{node: "node2", attrs: "get pods n/a", want: unrelated},
		{node: "node1", attrs: "get nodes /node2", want: "node 'node1' cannot read 'node2', only its own Node object"},
		{node: "node1", attrs: "list services /", want: "yes"}, {node: "node1", attrs: "delete services n/x", want: ""},
		{node: "", attrs: "get secrets n/s", want: `unknown node for user "system:node:"`},
		{node: "node1", attrs: "create podcertificaterequests n/", want: "yes"},
		{node: "node1", attrs: "get podcertificaterequests n/pcr", want: "yes"},
		{node: "node2", attrs: "get podcertificaterequests n/pcr", want: unrelated},
		{node: "node1", attrs: "list podcertificaterequests /", fields: "spec.nodeName=node1", want: "yes"},
		{
			node: "node1", attrs: "watch podcertificaterequests /", fields: "spec.nodeName=node2",
			want: "can only list/watch podcertificaterequests with nodeName field selector",
		},
		{
			node: "node1", attrs: "delete podcertificaterequests n/pcr",
			want: "nodes may not delete podcertificaterequests",
		},
		{
			node: "node1", attrs: "update podcertificaterequests/status n/pcr",
			want: "nodes may not access the status subresource of PodCertificateRequests",
		},
	} {
		verb, rest, _ := strings.Cut(tc.attrs, " ")
		resource, key, _ := strings.Cut(rest, " ")
		info := &request.Info{IsResource: true, Verb: verb, Version: "v1"}
		info.Resource, info.Subresource, _ = strings.Cut(resource, "/")
		info.Namespace, info.Name, _ = strings.Cut(key, "/")
		u := &user.DefaultInfo{Name: "system:node:" + tc.node, Groups: []string{user.NodesGroup}}
		if info.Resource == "podcertificaterequests" {
			info.Group = "certificates.k8s.io"
		}
		info.FieldSelector = tc.fields
		d, err := Authorizer{View: view, PodCertificates: true}.Authorize(t.Context(), u, info)
		got := d.Reason
		if d.Allowed() {
			got = "yes"
		}
		if err != nil || got != tc.want {
			t.Errorf("%s %s: %q, %v; want %q", tc.node, tc.attrs, got, err, tc.want)
		}
	}
	kubelet := &user.DefaultInfo{Name: "system:node:node1", Groups: []string{user.NodesGroup}}
	ask := &request.Info{IsResource: true, Verb: "create", Resource: "podcertificaterequests", Namespace: "n"}
	ask.Group = "certificates.k8s.io"
	if d, err := (Authorizer{View: view}).Authorize(t.Context(), kubelet, ask); d.Verdict != 0 || err != nil {
		t.Errorf("a kind that is not served: %+v, %v", d, err)
	}
	bundles := &request.Info{IsResource: true, Verb: "list", Resource: "clustertrustbundles"}
	bundles.Group = "certificates.k8s.io"
	for _, on := range []bool{false, true} {
		d, err := Authorizer{View: view, TrustBundles: on}.Authorize(t.Context(), kubelet, bundles)
		if d.Allowed() != on || err != nil {
			t.Errorf("bundles of authorities, the feature being on: %t: %+v, %v", on, d, err)
		}
	}
	bundles.Verb = "delete"
	d, err := Authorizer{View: view, TrustBundles: true}.Authorize(t.Context(), kubelet, bundles)
	if d.Verdict != 0 || err != nil {
		t.Errorf("to delete a bundle of authorities: %+v, %v", d, err)
	}
	stranger := &user.DefaultInfo{Name: "system:node:node1"}
	d, err = Authorizer{View: view}.Authorize(t.Context(), stranger,
		&request.Info{IsResource: true, Verb: "get", Resource: "secrets", Namespace: "n", Name: "s"})
	if d.Verdict != 0 || d.Reason != "" || err != nil {
		t.Errorf("a user who is in no group: %+v, %v", d, err)
	}
}
