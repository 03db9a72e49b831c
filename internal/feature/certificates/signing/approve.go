package signing

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// approver approves the requests of kubelets for client certificates, by the permissions of the requester: create on
// certificatesigningrequests/selfnodeclient for a node's own certificate, and on nodeclient for any. Its keys are
// names.
type approver struct{ *part.Host }

func (a *approver) Observe(ev *watchcache.Event, need func(string)) { observe(ev, need) }

func (a *approver) Reconcile(ctx context.Context, name string) error {
	r := read(a.Host, name)
	if r == nil || r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		len(r.Status.Certificate) > 0 || has(r, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied) {
		return nil
	}
	req, err := certificates.ParseRequest(r.Spec.Request)
	if err != nil || checkKubeletClient(req, r.Spec.Usages) != nil {
		return nil // left to an administrator
	}
	subresources := []string{"nodeclient"}
	message := "Auto approving kubelet client certificate after SubjectAccessReview."
	if r.Spec.Username == req.Subject.CommonName {
		subresources = []string{"selfnodeclient", "nodeclient"}
	}
	for _, s := range subresources {
		allowed, err := a.may(ctx, r, s)
		if err != nil {
			return err
		}
		if !allowed {
			continue
		}
		if s == "selfnodeclient" {
			message = "Auto approving self kubelet client certificate after SubjectAccessReview."
		}
		return a.approve(ctx, r, message)
	}
	return nil
}

// may reports whether the requester may create a subresource of such requests.
func (a *approver) may(
	ctx context.Context, r *certificatesv1.CertificateSigningRequest, subresource string,
) (bool, error) {
	u := &user.DefaultInfo{Name: r.Spec.Username, UID: r.Spec.UID, Groups: r.Spec.Groups,
		Extra: map[string][]string{}}
	for key, values := range r.Spec.Extra {
		u.Extra[key] = values
	}
	decision, err := a.Authorizer.Authorize(ctx, u, &request.Info{
		IsResource: true, Verb: "create", Group: requests.Group, Version: "*", Resource: requests.Resource,
		Subresource: subresource,
	})
	if decision.Allowed() {
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("authorize %s for a node certificate: %w", r.Spec.Username, err)
	}
	return false, err
}

func (a *approver) approve(ctx context.Context, r *certificatesv1.CertificateSigningRequest, message string) error {
	return update(ctx, a.Host, r, "approval", func(status object.Object) {
		addCondition(status, certificatesv1.CertificateApproved, "AutoApproved", message)
	})
}

// update changes the status of r through a subresource. It does nothing if r has changed since it was read: that change
// requeues it.
func update(ctx context.Context, h *part.Host, r *certificatesv1.CertificateSigningRequest, subresource string,
	change func(status object.Object),
) error {
	call, err := h.Verbs.Call(requests, "", r.Name, control.ControllerUser("certificate-controller"))
	if err != nil {
		return err
	}
	call = call.Under(subresource)
	_, err = h.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			if object.String(obj, "metadata", "resourceVersion") != r.ResourceVersion {
				return nil, apierrors.NewConflict(certificatesv1.Resource(requests.Resource), r.Name, nil)
			}
			change(object.Child(obj, "status"))
			return obj, nil
		})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
