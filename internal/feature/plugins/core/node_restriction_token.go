package core

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-helpers/storage/ephemeral"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request"
)

// token lets a kubelet request tokens of service accounts only for the pods on its node, and for their audiences. Other
// writes of service accounts are left to authorization.
func (n nodeLimits) token(ctx context.Context, node string, a *admit.Attributes) error {
	if a.Operation != admit.Create || a.Subresource != "token" {
		return nil
	}
	req := new(authenticationv1.TokenRequest)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Object, req); err != nil {
		return err
	}
	bound := req.Spec.BoundObjectRef
	switch {
	case bound == nil || bound.APIVersion != "v1" || bound.Kind != "Pod" || bound.Name == "":
		return refuse(a, "node requested token not bound to a pod")
	case bound.UID == "":
		return refuse(a, "node requested token with a pod binding without a uid")
	}
	pod, err := plugin.Lookup[corev1.Pod](ctx, n.view, ref.Pods.Prefix, a.Namespace, bound.Name)
	switch {
	case err != nil:
		return err
	case pod == nil:
		return apierrors.NewNotFound(corev1.Resource("pod"), bound.Name)
	case bound.UID != pod.UID:
		return refuse(a, "the UID in the bound object reference (%s) does not match the UID in record. "+
			"The object might have been deleted and then recreated", bound.UID)
	case pod.Spec.NodeName != node:
		return refuse(a, "node requested token bound to a pod scheduled on a different node")
	}
	if n.anyAudience {
		return nil
	}
	if err := n.audience(ctx, a, req.Spec.Audiences, pod); err != nil {
		return admit.Forbidden(a, err)
	}
	return nil
}

// audience rejects a token for an audience that no volume of the pod requests, unless the kubelet has the permission.
func (n nodeLimits) audience(ctx context.Context, a *admit.Attributes, audiences []string, pod *corev1.Pod) error {
	wanted := ""
	switch len(audiences) {
	case 0:
	case 1:
		wanted = audiences[0]
	default:
		return fmt.Errorf("node may only request 0 or 1 audiences")
	}
	found, err := n.mounts(ctx, pod, wanted)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %w", wanted, err)
	}
	if found {
		return nil
	}
	d, err := n.authz.Authorize(ctx, a.User, &request.Info{
		IsResource: true, Verb: "request-serviceaccounts-token-audience", APIPrefix: "api", Version: "v1",
		Namespace: a.Namespace, Resource: wanted, Name: a.Name,
	})
	switch {
	case d.Allowed():
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request tokens for audience %q: %w", a.User.GetName(), wanted, err)
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", a.User.GetName(), wanted)
}

// mounts reports whether a volume of the pod requests tokens for an audience. If one does, errors about earlier volumes
// are dropped.
func (n nodeLimits) mounts(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if t := source.ServiceAccountToken; t != nil && t.Audience == audience {
					return true, nil
				}
			}
		}
		wants, err := n.driverWants(ctx, pod, v, audience)
		if wants {
			return true, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, utilerrors.NewAggregate(errs)
}

// driverWants reports whether the CSI driver of a volume requests tokens for an audience.
func (n nodeLimits) driverWants(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, audience string) (bool, error) {
	name, err := n.driver(ctx, pod, v)
	if err != nil || name == "" {
		return false, err
	}
	driver, err := plugin.Lookup[storagev1.CSIDriver](ctx, n.view, ref.CSIDrivers.Prefix, "", name)
	if err != nil {
		return false, err
	}
	if driver == nil {
		return false, apierrors.NewNotFound(storagev1.Resource("csidriver"), name)
	}
	for _, t := range driver.Spec.TokenRequests {
		if t.Audience == audience {
			return true, nil
		}
	}
	return false, nil
}

// driver returns the CSI driver of a volume, or "" if it has none. Volumes of older types have the driver that replaces
// them.
func (n nodeLimits) driver(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	translator := csitranslation.New()
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		return n.driverOfClaim(ctx, pod.Namespace, ephemeral.VolumeClaimName(pod, v))
	case v.PersistentVolumeClaim != nil:
		return n.driverOfClaim(ctx, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case translator.IsInlineMigratable(v):
		volume, err := translator.TranslateInTreeInlineVolumeToCSI(klog.FromContext(ctx), v, pod.Namespace)
		if err != nil || volume.Spec.CSI == nil {
			return "", err
		}
		return volume.Spec.CSI.Driver, nil
	}
	return "", nil
}

func (n nodeLimits) driverOfClaim(ctx context.Context, namespace, name string) (string, error) {
	claim, err := plugin.Lookup[corev1.PersistentVolumeClaim](ctx, n.view, ref.PersistentVolumeClaims.Prefix,
		namespace, name)
	if err != nil {
		return "", err
	}
	if claim == nil {
		return "", apierrors.NewNotFound(corev1.Resource("persistentvolumeclaim"), name)
	}
	volume, err := plugin.Lookup[corev1.PersistentVolume](ctx, n.view, ref.PersistentVolumes.Prefix, "",
		claim.Spec.VolumeName)
	if err != nil {
		return "", err
	}
	if volume == nil {
		return "", apierrors.NewNotFound(corev1.Resource("persistentvolume"), claim.Spec.VolumeName)
	}
	if translator := csitranslation.New(); volume.Spec.CSI == nil && translator.IsPVMigratable(volume) {
		if volume, err = translator.TranslateInTreePVToCSI(klog.FromContext(ctx), volume); err != nil {
			return "", err
		}
	}
	if volume.Spec.CSI == nil {
		return "", nil
	}
	return volume.Spec.CSI.Driver, nil
}
