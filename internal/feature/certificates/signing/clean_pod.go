package signing

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// PodCertificates is the feature gate of PodCertificateRequests.
const PodCertificates = "PodCertificateRequest"

// keepPodRequest is the time after which a request is of no use, because kubelets give up earlier.
const keepPodRequest = 15 * time.Minute

// podCleaner deletes PodCertificateRequests when they are 15 minutes old. Its keys are the keys of the requests.
type podCleaner struct{ *part.Host }

func (c *podCleaner) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == ref.PodCertificateRequests.Prefix && ev.Type != watchcache.Deleted {
		need(ev.Entry.Key())
	}
}

func (c *podCleaner) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	e := c.View.Collection(ref.PodCertificateRequests.Prefix).Snapshot().Get(namespace, name)
	if e == nil || e.Deleting {
		return nil
	}
	text, _ := e.Field("metadata.creationTimestamp")
	created, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil // only another server's object can be without the time
	}
	if left := keepPodRequest - c.Now().Sub(created); left > 0 {
		return control.Again(left)
	}
	call, err := c.Verbs.Call(ref.PodCertificateRequests.GroupResource(), namespace, name,
		control.ControllerUser("podcertificaterequestcleaner"))
	if err != nil {
		return err
	}
	uid := types.UID(e.UID)
	_, err = c.Verbs.Delete(ctx, call, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil // another request has replaced it
	}
	return control.IgnoreNotFound(err)
}
