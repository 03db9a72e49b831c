package signing

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Requests go an hour after they are decided, and after a day without a decision or a certificate.
func TestDone(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		name      string
		condition certificatesv1.RequestConditionType
		issued    bool
		age       time.Duration
		want      bool
	}{
		{"pending for a day", "", false, 24 * time.Hour, false},
		{"pending for longer", "", false, 24*time.Hour + 1, true},
		{"denied for an hour", certificatesv1.CertificateDenied, false, time.Hour, false},
		{"denied for longer", certificatesv1.CertificateDenied, false, time.Hour + 1, true},
		{"failed for longer", certificatesv1.CertificateFailed, false, time.Hour + 1, true},
		{"approved for longer", certificatesv1.CertificateApproved, false, time.Hour + 1, false},
		{"approved for a day and longer", certificatesv1.CertificateApproved, false, 24*time.Hour + 1, true},
		{"issued for an hour", certificatesv1.CertificateApproved, true, time.Hour, false},
		{"issued for longer", certificatesv1.CertificateApproved, true, time.Hour + 1, true},
	} {
		at := metav1.NewTime(now.Add(-test.age))
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}}
		if test.condition != "" {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: test.condition, LastUpdateTime: at},
			}
		}
		if test.issued {
			r.Status.Certificate = []byte("no certificate that ends")
		}
		if got := done(r, now); got != test.want {
			t.Errorf("%s: done %v", test.name, got)
		}
	}
}
