package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request"
)

// podCertificate lets a kubelet request certificates only for the pods on its node. If kubelet and view may be out of
// sync, it returns an error that makes the kubelet retry; otherwise it rejects.
func (n nodeLimits) podCertificate(ctx context.Context, node string, a *admit.Attributes) error {
	switch {
	case a.Operation != admit.Create:
		return refuse(a, "unexpected operation %v", a.Operation)
	case a.Subresource != "":
		return refuse(a, "unexpected subresource %v", a.Subresource)
	}
	some, err := parts[certificatesv1.PodCertificateRequest](a.Object, "spec")
	if err != nil {
		return err
	}
	spec := &some.Spec
	if string(spec.NodeName) != node {
		return refuse(a, "PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", spec.NodeName,
			node)
	}
	own, err := plugin.Lookup[corev1.Node](ctx, n.view, ref.Nodes.Prefix, "", node)
	switch {
	case err != nil:
		return refuse(a, "while retrieving node %q named in the PodCertificateRequest: %w", node, err)
	case own == nil:
		return fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: %v", node,
			apierrors.NewNotFound(corev1.Resource("node"), node))
	}
	name := a.Namespace + "/" + spec.PodName
	if own.UID != spec.NodeUID {
		return fmt.Errorf("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)",
			name, spec.NodeUID, own.UID)
	}
	return n.ofPod(ctx, a, spec)
}

// ofPod checks the pod and the service account in a request.
func (n nodeLimits) ofPod(
	ctx context.Context, a *admit.Attributes, spec *certificatesv1.PodCertificateRequestSpec,
) error {
	name := a.Namespace + "/" + spec.PodName
	pod, err := plugin.Lookup[corev1.Pod](ctx, n.view, ref.Pods.Prefix, a.Namespace, spec.PodName)
	mirrors := func() bool { _, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; return ok }
	switch {
	case err != nil:
		return refuse(a, "while retrieving pod %q named in the PodCertificateRequest: %w", name, err)
	case pod == nil:
		return fmt.Errorf("while retrieving pod %q named in the PodCertificateRequest: %v", name,
			apierrors.NewNotFound(corev1.Resource("pod"), spec.PodName))
	case pod.UID != spec.PodUID:
		return fmt.Errorf("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q",
			name, spec.PodUID, pod.UID)
	case pod.Spec.NodeName != string(spec.NodeName):
		return refuse(a, "pod %q is not running on node %q named in the PodCertificateRequest", name, spec.NodeName)
	case mirrors():
		return refuse(a, "pod %q is a mirror pod", name)
	case pod.Spec.ServiceAccountName != spec.ServiceAccountName:
		return refuse(a,
			"PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", name,
			spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	account, err := plugin.Lookup[corev1.ServiceAccount](ctx, n.view, ref.ServiceAccounts.Prefix, a.Namespace,
		spec.ServiceAccountName)
	called := a.Namespace + "/" + spec.ServiceAccountName
	switch {
	case err != nil:
		return refuse(a, "while retrieving service account %q named in the PodCertificateRequest: %w", called, err)
	case account == nil:
		return fmt.Errorf("while retrieving service account %q named in the PodCertificateRequest: %v", called,
			apierrors.NewNotFound(corev1.Resource("serviceaccount"), spec.ServiceAccountName))
	case account.UID != spec.ServiceAccountUID:
		return fmt.Errorf("PodCertificateRequest for pod %q names service account UID %q, which differs from the "+
			"running service account (%q)", name, spec.ServiceAccountUID, account.UID)
	}
	return n.signer(ctx, a, spec, pod)
}

// signer rejects a request to a signer that no volume of the pod names, unless the kubelet has the permission.
func (n nodeLimits) signer(
	ctx context.Context, a *admit.Attributes, spec *certificatesv1.PodCertificateRequestSpec, pod *corev1.Pod,
) error {
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Projected; v != nil && slices.ContainsFunc(v.Sources,
			func(s corev1.VolumeProjection) bool {
				return s.PodCertificate != nil && s.PodCertificate.SignerName == spec.SignerName
			}) {
			return nil
		}
	}
	d, err := n.authz.Authorize(ctx, a.User, &request.Info{
		IsResource: true, Verb: "request-serviceaccounts-podcertificate-signer", APIPrefix: "apis",
		Group: certificatesv1.GroupName, Version: a.Version.Name, Namespace: a.Namespace,
		Resource: strings.ReplaceAll(spec.SignerName, "/", ":"), Name: spec.ServiceAccountName,
	})
	switch {
	case d.Allowed():
		return nil
	case err != nil:
		return refuse(a, "error authorizing %s to request podcertificaterequests for signer %q: %w", a.User.GetName(),
			spec.SignerName, err)
	}
	return refuse(a, "pod %q does not mount a podCertificate projected volume for signer %q",
		a.Namespace+"/"+spec.PodName, spec.SignerName)
}
