package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// claimName returns the name of the claim of a claim template and an ordinal.
func claimName(set *appsv1.StatefulSet, template string, n int) string {
	return fmt.Sprintf("%s-%s-%d", template, set.Name, n)
}

// claims returns the existing claims of a pod, and the missing ones as they are to be created.
func (r *ordered) claims(p *corev1.Pod) (there, missing []*corev1.PersistentVolumeClaim) {
	_, n := ordinal(p)
	for _, template := range r.set.Spec.VolumeClaimTemplates {
		name := claimName(r.set, template.Name, n)
		if claim := cluster.PersistentVolumeClaims.Read(r.index, r.set.Namespace, name); claim != nil {
			there = append(there, claim)
			continue
		}
		claim := template.DeepCopy()
		claim.Name, claim.Namespace = name, r.set.Namespace
		for k, v := range r.set.Spec.Selector.MatchLabels {
			claim.Labels = with(claim.Labels, k, v)
		}
		missing = append(missing, claim)
	}
	return there, missing
}

// makeClaims creates the missing claims of a pod.
func (r *ordered) makeClaims(ctx context.Context, p *corev1.Pod) error {
	there, missing := r.claims(p)
	var failed []error
	for _, claim := range there {
		if claim.DeletionTimestamp != nil {
			failed = append(failed, fmt.Errorf("pvc %s is being deleted", claim.Name))
		}
	}
	for _, claim := range missing {
		_, err := cluster.PersistentVolumeClaims.Create(ctx, r.Cluster, claim)
		about := cluster.StatefulSets.Ref(r.set)
		switch {
		case apierrors.IsAlreadyExists(err):
		case err != nil:
			failed = append(failed, fmt.Errorf("failed to create PVC %s: %w", claim.Name, err))
			r.Warning(ctx, about, "FailedCreate", "Create Claim %s for Pod %s in StatefulSet %s failed error: %s",
				claim.Name, p.Name, r.set.Name, err)
		default:
			r.Normal(ctx, about, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success",
				claim.Name, p.Name, r.set.Name)
		}
	}
	return errors.Join(failed...)
}

// retention returns whether claims are deleted with the set, and with pods that are scaled down.
func retention(set *appsv1.StatefulSet) (withSet, withPod bool) {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	return policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// waitsForClaims reports whether a claim of a pod still belongs to the pod that had its name.
func (r *ordered) waitsForClaims(p *corev1.Pod) bool {
	if _, withPod := retention(r.set); !withPod {
		return false
	}
	there, _ := r.claims(p)
	return slices.ContainsFunc(there, func(claim *corev1.PersistentVolumeClaim) bool {
		return slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return isRef(ref, p, cluster.Pods.Kind) && ref.UID != p.UID
		})
	})
}

func isRef(ref metav1.OwnerReference, of metav1.Object, kind string) bool {
	return ref.Kind == kind && ref.Name == of.GetName()
}

// fixClaims sets the owner of the pod's claims to the set or the pod, by the retention policy, and reports whether that
// changed any.
func (r *ordered) fixClaims(ctx context.Context, p *corev1.Pod) (fixed bool, err error) {
	there, _ := r.claims(p)
	for _, claim := range there {
		refs, conflict := r.claimOwners(claim, p)
		if conflict {
			r.Warning(ctx, cluster.StatefulSets.Ref(r.set), "ConflictingController",
				"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, "+
					"the retention policy is ignored for this claim", claim.Name)
		}
		if sameOwners(refs, claim.OwnerReferences) {
			continue
		}
		_, err := cluster.PersistentVolumeClaims.Update(ctx, r.Cluster, claim,
			func(now *corev1.PersistentVolumeClaim) error {
				now.OwnerReferences, _ = r.claimOwners(now, p)
				return nil
			})
		if err := control.IgnoreNotFound(err); err != nil {
			return fixed, fmt.Errorf("could not update claim %s for delete policy ownerRefs: %w", claim.Name, err)
		}
		fixed = true
	}
	return fixed, nil
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && (a.Controller != nil && *a.Controller) == (b.Controller != nil && *b.Controller)
	})
}

// claimOwners returns the owners of a claim by the retention policy. They stay as they are if one of them is an earlier
// set or pod of the same name. A claim of another controller is left to it, with a conflict if claims are to be
// deleted.
func (r *ordered) claimOwners(
	claim *corev1.PersistentVolumeClaim, p *corev1.Pod,
) (refs []metav1.OwnerReference, conflict bool) {
	withSet, withPod := retention(r.set)
	for _, ref := range claim.OwnerReferences {
		isSet, isPod := isRef(ref, r.set, cluster.StatefulSets.Kind), isRef(ref, p, cluster.Pods.Kind)
		switch {
		case isSet && ref.UID != r.set.UID, isPod && ref.UID != p.UID:
			return claim.OwnerReferences, false
		case isSet, isPod:
			continue
		case ref.Controller != nil && *ref.Controller && (withSet || withPod):
			conflict = true
		}
		refs = append(refs, ref)
	}
	if conflict {
		return refs, true
	}
	_, n := ordinal(p)
	gone := !inRange(r.set, n)
	if withPod && gone && p.UID != "" {
		refs = append(refs, *metav1.NewControllerRef(p, cluster.Pods.GroupVersionKind()))
	}
	if withSet && !(withPod && gone) {
		refs = append(refs, r.ref)
	}
	return refs, false
}
