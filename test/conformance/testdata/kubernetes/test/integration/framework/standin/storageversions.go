package standin

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storageversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// StorageVersions stand for the manager of a server of another process, whose StorageVersions wait for a webhook of
// this one until UpdateStorageVersions is called.
type StorageVersions struct {
	storageversion.Manager
	release func()
}

// HoldStorageVersions registers the webhook on a server; those that are started later on its keys have it.
func HoldStorageVersions(cleanup func(func()), config *rest.Config) (*StorageVersions, error) {
	held := make(chan struct{})
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var object metav1.PartialObjectMetadata
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.Unmarshal(review.Request.Object.Raw, &object)
		if !strings.HasPrefix(object.GenerateName, "test.") { // those are the test's own
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	}))
	release := sync.OnceFunc(func() { close(held) })
	cleanup(func() { release(); hook.Close() })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	none, long := admissionregistrationv1.SideEffectClassNone, int32(30)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(context.Background(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hold-storage-versions"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "hold.storage.versions", SideEffects: &none, TimeoutSeconds: &long,
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &hook.URL, CABundle: authority},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{"internal.apiserver.k8s.io"},
						APIVersions: []string{"*"}, Resources: []string{"storageversions", "storageversions/status"}},
				}},
			}},
		}, metav1.CreateOptions{})
	return &StorageVersions{Manager: storageversion.NewDefaultManager(), release: release}, err
}

// UpdateStorageVersions lets the server write, and returns when it has.
func (s *StorageVersions) UpdateStorageVersions(config *rest.Config, _ string) {
	s.release()
	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	_ = wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return client.Get().AbsPath("/readyz/poststarthook/built-in-resources-storage-version-updater").
				Do(ctx).Error() == nil, nil
		})
}
