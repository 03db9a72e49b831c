package signing_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/feature/certificates/signing"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var podRequests = schema.GroupVersionResource{
	Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests",
}

// podRequest returns a request for a pod's certificate.
func podRequest(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	obj := controltest.Object("certificates.k8s.io/v1", "PodCertificateRequest", "default", name)
	obj.Object["spec"] = map[string]any{
		"signerName": "example.com/own", "podName": "p", "podUID": "p-uid", "serviceAccountName": "a",
		"serviceAccountUID": "a-uid", "nodeName": "n", "nodeUID": "n-uid",
		"stubPKCS10Request": base64.StdEncoding.EncodeToString(der),
	}
	return obj
}

// TestPodRequestsAreCleaned checks that a PodCertificateRequest goes when it is 15 minutes old, and not earlier. A
// label has the controller check both requests by the clock of the server; when "old" is gone, it has checked "young".
func TestPodRequestsAreCleaned(t *testing.T) {
	clock := testserver.NewClock()
	c := controltest.Start(t, testserver.WithClock(clock))
	label := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := c.In(podRequests, "default").Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"checked":"`+clock.Now().Format("150405")+`"}}}`),
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Create(podRequests, podRequest(t, "old"))
	clock.Advance(2 * time.Minute)
	c.Create(podRequests, podRequest(t, "young"))
	clock.Advance(14 * time.Minute)
	label("young", "old")
	c.Until(podRequests, "default", "young")
	clock.Advance(2 * time.Minute)
	label("young")
	c.Until(podRequests, "default", "")
}

// TestLoopsWithoutGates checks that two loops do not exist without their feature gates: their kinds are not served.
func TestLoopsWithoutGates(t *testing.T) {
	found := 0
	for _, loop := range signing.Part(signing.Settings{}).Loops {
		switch loop.Name {
		case "podcertificaterequest-cleaner-controller",
			"kube-apiserver-serving-clustertrustbundle-publisher-controller":
			if found++; loop.New(nil) != nil {
				t.Errorf("%s runs", loop.Name)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d loops with feature gates", found)
	}
}
