package signing

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
)

// notice records an Event on an approved request for a signer that this server does not have. Without a controller for
// that signer the request waits forever, and nothing else shows the reason. The type is Normal, since such a controller
// may be running. There is one Event for each request, until it expires.
func notice(ctx context.Context, h *part.Host, r *certificatesv1.CertificateSigningRequest) error {
	name := r.Name + "." + string(r.UID)
	if h.View.Collection(ref.Events.Prefix).Snapshot().Get(metav1.NamespaceDefault, name) != nil {
		return nil
	}
	call, err := h.Verbs.Call(ref.Events.GroupResource(), metav1.NamespaceDefault, "",
		control.ControllerUser("certificate-controller"))
	if err != nil {
		return err
	}
	const component = "certificatesigningrequest-signing-controller"
	now := h.Now().UTC().Format(time.RFC3339)
	obj, err := h.Verbs.New(call, object.Object{
		"metadata": object.Object{"name": name, "namespace": metav1.NamespaceDefault},
		"involvedObject": object.Object{
			"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1", "name": r.Name,
			"uid": string(r.UID), "resourceVersion": r.ResourceVersion,
		},
		"type": corev1.EventTypeNormal, "reason": "AwaitingSigner", "count": int64(1),
		"message": fmt.Sprintf("Approved, but this server issues certificates for Kubernetes' own signers only: "+
			"the controller of signer %q must issue this one", r.Spec.SignerName),
		"firstTimestamp": now, "lastTimestamp": now,
		"source": object.Object{"component": component}, "reportingComponent": component,
	})
	if err != nil {
		return err
	}
	_, err = h.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) { // there is one; or no namespace
		return nil
	}
	return err
}
