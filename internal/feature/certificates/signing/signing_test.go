package signing_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/testserver"
)

// story is a server with a client of the administrator's.
type story struct {
	*testing.T
	config *rest.Config
	admin  kubernetes.Interface
}

func start(t *testing.T, configure ...func(*bowsprit.Config)) *story {
	t.Helper()
	t.Parallel()
	config := testserver.Start(t, configure...).RESTConfig()
	return &story{t, config, client(t, config)}
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// csr is a request for a certificate.
type csr struct {
	signer, user string
	groups, dns  []string
	usages       []certificatesv1.KeyUsage
	seconds      *int32
}

// ask creates a request as a client, and returns its name and the key.
func (s *story) ask(by kubernetes.Interface, w csr) (string, *ecdsa.PrivateKey) {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: w.user, Organization: w.groups}, DNSNames: w.dns,
	}, key)
	if err != nil {
		s.Fatal(err)
	}
	r, err := by.CertificatesV1().CertificateSigningRequests().Create(s.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: w.signer, Usages: w.usages, ExpirationSeconds: w.seconds,
			},
		}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return r.Name, key
}

func (s *story) approve(name string) {
	s.Helper()
	requests := s.admin.CertificatesV1().CertificateSigningRequests()
	r, err := requests.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	if _, err = requests.UpdateApproval(s.Context(), name, r, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// settled waits until a request has a certificate or has failed.
func (s *story) settled(name string) *certificatesv1.CertificateSigningRequest {
	s.Helper()
	limit := int64(30) // reached only if the test fails
	w, err := s.admin.CertificatesV1().CertificateSigningRequests().Watch(s.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: &limit})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		r, ok := ev.Object.(*certificatesv1.CertificateSigningRequest)
		if ok && (len(r.Status.Certificate) > 0 || slices.ContainsFunc(r.Status.Conditions,
			func(c certificatesv1.CertificateSigningRequestCondition) bool {
				return c.Type == certificatesv1.CertificateFailed
			})) {
			return r
		}
	}
	s.Fatalf("request %s was not signed", name)
	return nil
}

func (s *story) as(user string, groups ...string) kubernetes.Interface {
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return client(s.T, config)
}

// whoami returns the server's user for a certificate.
func (s *story) whoami(certificate []byte, key *ecdsa.PrivateKey) string {
	s.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		s.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.config)
	config.CertData = certificate
	config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	review, err := client(s.T, config).AuthenticationV1().SelfSubjectReviews().Create(s.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprint(review.Status.UserInfo.Username, " ", review.Status.UserInfo.Groups)
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no certificate: %q", data)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

var clientUsages = []certificatesv1.KeyUsage{
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth,
}

// TestPersonIsSigned checks that an approved user gets a certificate with the requested duration, which authenticates
// them, and that wrong usages for the signer fail with Kubernetes' reason.
func TestPersonIsSigned(t *testing.T) {
	s := start(t)
	seconds := int32(3600)
	name, key := s.ask(s.admin, csr{
		signer: certificatesv1.KubeAPIServerClientSignerName, user: "alice", groups: []string{"dev"},
		usages: clientUsages, seconds: &seconds,
	})
	wrong, _ := s.ask(s.admin, csr{
		signer: certificatesv1.KubeAPIServerClientSignerName, user: "alice",
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth},
	})
	s.approve(name)
	s.approve(wrong)
	r := s.settled(name)
	if got := s.whoami(r.Status.Certificate, key); got != "alice [dev system:authenticated]" {
		t.Errorf("the server knows %s", got)
	}
	c := parse(t, r.Status.Certificate)
	if c.IsCA || c.NotAfter.Sub(c.NotBefore) != time.Hour+5*time.Minute || len(c.ExtKeyUsage) != 1 {
		t.Errorf("certificate from %s to %s, CA %v, usages %v", c.NotBefore, c.NotAfter, c.IsCA, c.ExtKeyUsage)
	}
	r = s.settled(wrong)
	last := r.Status.Conditions[len(r.Status.Conditions)-1]
	if len(r.Status.Certificate) > 0 || last.Reason != "SignerValidationFailure" ||
		last.Message != "invalid usage for client certificate: server auth" || last.LastUpdateTime.IsZero() {
		t.Errorf("wrong usages: %v", last)
	}
}

// TestKubeletJoins checks that a joining kubelet gets its certificate by Kubernetes' role for that, and renews it as
// itself. The request of a user with only the permission to create requests waits for approval.
func TestKubeletJoins(t *testing.T) {
	s := start(t)
	bind := func(role string, subject rbacv1.Subject) {
		subject.APIGroup = rbacv1.GroupName
		_, err := s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{subject},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	const approving = "system:certificates.k8s.io:certificatesigningrequests:"
	bind("system:node-bootstrapper", rbacv1.Subject{Kind: "Group", Name: "system:bootstrappers"})
	bind("system:node-bootstrapper", rbacv1.Subject{Kind: "User", Name: "eve"})
	bind(approving+"nodeclient", rbacv1.Subject{Kind: "Group", Name: "system:bootstrappers"})
	bind(approving+"selfnodeclient", rbacv1.Subject{Kind: "Group", Name: "system:nodes"})
	kubelet := csr{
		signer: certificatesv1.KubeAPIServerClientKubeletSignerName, user: "system:node:n1",
		groups: []string{"system:nodes"}, usages: clientUsages,
	}
	refused, _ := s.ask(s.as("eve"), kubelet)
	joins, key := s.ask(s.as("system:bootstrap:abcdef", "system:bootstrappers"), kubelet)
	renews, _ := s.ask(s.as("system:node:n1", "system:nodes"), kubelet)
	for name, want := range map[string]string{
		joins:  "Auto approving kubelet client certificate after SubjectAccessReview.",
		renews: "Auto approving self kubelet client certificate after SubjectAccessReview.",
	} {
		r := s.settled(name)
		if c := r.Status.Conditions[0]; c.Reason != "AutoApproved" || c.Message != want {
			t.Errorf("%s: %v", name, c)
		}
		if name != joins {
			continue
		}
		if got := s.whoami(r.Status.Certificate, key); got != "system:node:n1 [system:nodes system:authenticated]" {
			t.Errorf("the server knows %s", got)
		}
	}
	// The controller has one worker: it has checked this one before the others.
	r, err := s.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), refused, metav1.GetOptions{})
	if err != nil || len(r.Status.Conditions) > 0 {
		t.Errorf("of a user who may not: %v %v", r.Status.Conditions, err)
	}
}

// TestServingIsSigned checks that a serving certificate is for its names, and needs approval by an administrator.
func TestServingIsSigned(t *testing.T) {
	s := start(t)
	name, _ := s.ask(s.as("system:node:n1", "system:nodes", "system:masters"), csr{
		signer: certificatesv1.KubeletServingSignerName, user: "system:node:n1", groups: []string{"system:nodes"},
		dns:    []string{"n1.example.com"},
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
	})
	s.approve(name)
	c := parse(t, s.settled(name).Status.Certificate)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.config.CAData)
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: "n1.example.com"}); err != nil {
		t.Error(err)
	}
	if life := c.NotAfter.Sub(c.NotBefore); life != 365*24*time.Hour || c.Subject.CommonName != "system:node:n1" {
		t.Errorf("%s lasts %s", c.Subject, life)
	}
}

// TestOtherSignerIsNoticed checks that an approved request for an unknown signer has an event, which kubectl describe
// shows.
func TestOtherSignerIsNoticed(t *testing.T) {
	s := start(t)
	w := csr{signer: "example.com/signer", user: "alice", usages: clientUsages}
	waiting, _ := s.ask(s.admin, w)
	name, _ := s.ask(s.admin, w)
	s.approve(name)
	limit := int64(60) // reached only if the test fails
	events, err := s.admin.CoreV1().Events(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{
		FieldSelector:  "involvedObject.kind=CertificateSigningRequest",
		TimeoutSeconds: &limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	ev, ok := (<-events.ResultChan()).Object.(*corev1.Event)
	const want = `Approved, but this server issues certificates for Kubernetes' own signers only: ` +
		`the controller of signer "example.com/signer" must issue this one`
	if !ok || ev.InvolvedObject.Name != name || ev.Reason != "AwaitingSigner" || ev.Type != corev1.EventTypeNormal ||
		ev.Message != want {
		t.Errorf("event %+v; %s is not approved", ev, waiting)
	}
}

// TestSignedByFiles checks that an authority from files signs for its signer, within the maximum duration, and that
// requests for other signers are left alone.
func TestSignedByFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := pki.Open(pki.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	files := bowsprit.AuthorityFiles{CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "ca.key")}
	s := start(t, func(c *bowsprit.Config) {
		c.Controllers.Signing = bowsprit.SigningConfig{KubeAPIServerClient: files, Duration: time.Hour}
	})
	ask := func(w csr) string {
		name, _ := s.ask(s.admin, w)
		s.approve(name)
		return name
	}
	others := ask(csr{
		signer: certificatesv1.KubeletServingSignerName, user: "system:node:a", groups: []string{"system:nodes"},
		dns: []string{"a"}, usages: []certificatesv1.KeyUsage{
			certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth,
		},
	})
	own := ask(csr{signer: certificatesv1.KubeAPIServerClientSignerName, user: "alice", usages: clientUsages})
	c := parse(t, s.settled(own).Status.Certificate)
	authority, err := os.ReadFile(files.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckSignatureFrom(parse(t, authority)); err != nil {
		t.Errorf("signed by %s: %v", c.Issuer, err)
	}
	if lasts := c.NotAfter.Sub(c.NotBefore); lasts != time.Hour+5*time.Minute {
		t.Errorf("lasts %s", lasts)
	}
	// There is one worker, so it has checked the other request before.
	r, err := s.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), others, metav1.GetOptions{})
	if err != nil || len(r.Status.Certificate) > 0 {
		t.Errorf("signed for a signer that has no authority: %v", err)
	}
}
