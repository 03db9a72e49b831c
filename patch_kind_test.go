package bowsprit_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestPatchOfKind checks kube-apiserver 1.36.3's responses to patches that remove kind or apiVersion, or have an
// unknown type.
func TestPatchOfKind(t *testing.T) {
	client, err := kubernetes.NewForConfig(testserver.Start(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const noName = "the name of the object (a based on URL) was undeterminable: name must be provided"
	for _, c := range []struct{ kind, patch, want string }{
		{"application/json-patch+json", `[{"op":"remove","path":"/kind"}]`, ""},
		{"application/json-patch+json", `[{"op":"remove","path":"/apiVersion"}]`, noName},
		{"application/merge-patch+json", `{"kind":null}`, ""},
		{"application/merge-patch+json", `{"apiVersion":null}`, noName},
		{"text/plain", `{}`, "415: Unsupported Media Type"},
	} {
		_, err := maps.Patch(t.Context(), "a", types.PatchType(c.kind), []byte(c.patch), metav1.PatchOptions{})
		got := ""
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			got = status.Status().Message
		}
		if got != c.want {
			t.Errorf("%s %s: %q, expected %q", c.kind, c.patch, got, c.want)
		}
	}
}

// TestGenerateNameOfIPAddress: the name of an IPAddress is the prefix, without a suffix, as in Kubernetes.
func TestGenerateNameOfIPAddress(t *testing.T) {
	client, err := kubernetes.NewForConfig(testserver.Start(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	made := func(prefix string) (*networkingv1.IPAddress, error) {
		return client.NetworkingV1().IPAddresses().Create(t.Context(), &networkingv1.IPAddress{
			ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
			Spec: networkingv1.IPAddressSpec{
				ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "x"},
			},
		}, metav1.CreateOptions{})
	}
	if ip, err := made("10.9.8.7"); err != nil || ip.Name != "10.9.8.7" {
		t.Errorf("%v: %v", ip, err)
	}
	const want = `IPAddress.networking.k8s.io "10.9.8." is invalid`
	if _, err := made("10.9.8."); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, expected %s", err, want)
	}
}
