package operators

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const issuers = `apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: itself, namespace: default}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: root, namespace: default}
spec:
  isCA: true
  commonName: root
  secretName: root-tls
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {name: itself, kind: Issuer}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority, namespace: default}
spec: {ca: {secretName: root-tls}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: default}
spec:
  dnsNames: [web.example.com]
  secretName: web-tls
  secretTemplate: {labels: {app: web}}
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {name: authority, kind: Issuer}
`

// TestCertManager issues a self-signed certificate with cert-manager and, from it, a server certificate; then it
// changes the request and deletes the result.
func TestCertManager(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t)
	s.apply(ctx, t, filepath.Join(moduleDir(t, ".", "github.com/cert-manager/cert-manager"), "deploy/crds"))
	launch(t, nil, "certmanager", "--kubeconfig="+s.kubeconfig)
	s.create(ctx, t, issuers)

	roots := x509.NewCertPool()
	root := s.issued(ctx, t, "root", 1)
	if !root.IsCA || root.CheckSignatureFrom(root) != nil {
		t.Errorf("root: %v", root.Subject)
	}
	roots.AddCert(root)
	see := func(revision int, name string) {
		t.Helper()
		web := s.issued(ctx, t, "web", revision)
		if _, err := web.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	see(1, "web.example.com")
	secret, err := s.typed.CoreV1().Secrets("default").Get(ctx, "web-tls", metav1.GetOptions{})
	must(t, err)
	if secret.Type != corev1.SecretTypeTLS || secret.Labels["app"] != "web" {
		t.Errorf("secret: %s %v", secret.Type, secret.Labels)
	}

	certificates := s.resource(t, "cert-manager.io/v1", "Certificate", "default")
	_, err = certificates.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"dnsNames":["www.example.com"]}}`),
		metav1.PatchOptions{})
	must(t, err)
	see(2, "www.example.com")
	must(t, s.typed.CoreV1().Secrets("default").Delete(ctx, "web-tls", metav1.DeleteOptions{}))
	see(3, "www.example.com")

	until(ctx, t, "events of the certificate", func() (bool, error) {
		events, err := s.typed.CoreV1().Events("default").List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=Certificate,involvedObject.name=web"})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "Issuing" }), nil
	})
}

// issued waits until the certificate is ready at the revision and returns the data of its secret.
func (s *server) issued(ctx context.Context, t *testing.T, name string, revision int) *x509.Certificate {
	t.Helper()
	var out *x509.Certificate
	until(ctx, t, fmt.Sprintf("certificate %s, revision %d", name, revision), func() (bool, error) {
		obj, err := s.resource(t, "cert-manager.io/v1", "Certificate", "default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c, err := into[cmapi.Certificate](obj)
		if err != nil {
			return false, err
		}
		ready := slices.ContainsFunc(c.Status.Conditions, func(c cmapi.CertificateCondition) bool {
			return c.Type == cmapi.CertificateConditionReady && c.Status == cmmeta.ConditionTrue
		})
		if !ready || c.Status.Revision == nil || *c.Status.Revision < revision {
			return false, fmt.Errorf("status: %+v", c.Status)
		}
		secret, err := s.typed.CoreV1().Secrets("default").Get(ctx, c.Spec.SecretName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
		if block == nil {
			return false, fmt.Errorf("no certificate in %s", secret.Name)
		}
		out, err = x509.ParseCertificate(block.Bytes)
		return err == nil, err
	})
	return out
}
