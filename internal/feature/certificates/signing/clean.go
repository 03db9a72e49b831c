package signing

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Kube's times.
const (
	cleanEvery  = time.Hour
	keepDecided = time.Hour
	keepPending = 24 * time.Hour
)

// cleaner removes requests an hour after their decision, and undecided ones after a day. As in Kubernetes it works in
// rounds, while there are requests. Its only key is "".
type cleaner struct {
	*part.Host
	planned atomic.Bool // the next round is scheduled
}

func (c *cleaner) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.CertificateSigningRequests.Prefix && ev.Type != watchcache.Deleted &&
		!c.planned.Load() {
		need("")
	}
}

func (c *cleaner) Reconcile(ctx context.Context, _ string) error {
	c.planned.Store(true)
	var names []string
	c.View.Collection(ref.CertificateSigningRequests.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		names = append(names, e.Name)
		return true
	})
	for _, name := range names {
		if r := read(c.Host, name); r != nil && done(r, c.Now()) {
			if err := c.remove(ctx, r); err != nil {
				return err
			}
		}
	}
	if len(names) == 0 {
		c.planned.Store(false)
		return nil
	}
	return control.Again(cleanEvery)
}

func (c *cleaner) remove(ctx context.Context, r *certificatesv1.CertificateSigningRequest) error {
	call, err := c.Verbs.Call(requests, "", r.Name, control.ControllerUser("certificate-controller"))
	if err != nil {
		return err
	}
	uid := types.UID(r.UID)
	_, err = c.Verbs.Delete(ctx, call, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// done reports whether a request is of no use any more.
func done(r *certificatesv1.CertificateSigningRequest, now time.Time) bool {
	older := func(t metav1.Time, d time.Duration) bool { return !t.IsZero() && now.Sub(t.Time) > d }
	issued := len(r.Status.Certificate) > 0
	if len(r.Status.Conditions) == 0 && older(r.CreationTimestamp, keepPending) {
		return true
	}
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			if older(c.LastUpdateTime, keepDecided) {
				return true
			}
		case certificatesv1.CertificateApproved:
			if issued && (older(c.LastUpdateTime, keepDecided) || expired(r.Status.Certificate, now)) ||
				!issued && older(c.LastUpdateTime, keepPending) {
				return true
			}
		}
	}
	return false
}

// expired reports whether the first certificate of data has ended.
func expired(data []byte, now time.Time) bool {
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && now.After(certificate.NotAfter)
}
