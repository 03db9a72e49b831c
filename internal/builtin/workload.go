package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// So far the rules of workloads are those that keep their parts together: selectors that select the template's pods and do not
// change, and templates with containers.

func validateDeployment(d *appsv1.Deployment) errorList {
	path := field.NewPath("spec")
	errs := append(checkFinalizers(d), validation.ValidateNonnegativeField(int64(deref(d.Spec.Replicas, 0)), path.Child("replicas"))...)
	errs = append(errs, checkSelector(d.Spec.Selector, "deployment", path.Child("selector"))...)
	errs = append(errs, checkSelected(d.Spec.Selector, &d.Spec.Template, path)...)
	errs = append(errs, validation.ValidateNonnegativeField(int64(d.Spec.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, validation.ValidateNonnegativeField(int64(deref(d.Spec.RevisionHistoryLimit, 0)), path.Child("revisionHistoryLimit"))...)
	if p := d.Spec.ProgressDeadlineSeconds; p != nil {
		errs = append(errs, validation.ValidateNonnegativeField(int64(*p), path.Child("progressDeadlineSeconds"))...)
		if *p <= d.Spec.MinReadySeconds {
			errs = append(errs, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateDeploymentUpdate(d, old *appsv1.Deployment, subresource string) errorList {
	if subresource == "status" {
		return checkFinalizers(d)
	}
	return append(validateDeployment(d), sameSelector(d.Spec.Selector, old.Spec.Selector)...)
}

func validateReplicaSet(r *appsv1.ReplicaSet) errorList {
	path := field.NewPath("spec")
	errs := append(checkFinalizers(r), validation.ValidateNonnegativeField(int64(deref(r.Spec.Replicas, 0)), path.Child("replicas"))...)
	errs = append(errs, validation.ValidateNonnegativeField(int64(r.Spec.MinReadySeconds), path.Child("minReadySeconds"))...)
	errs = append(errs, checkSelector(r.Spec.Selector, "deployment", path.Child("selector"))...) // kube's word
	return append(errs, checkSelected(r.Spec.Selector, &r.Spec.Template, path)...)
}

func validateReplicaSetUpdate(r, old *appsv1.ReplicaSet, subresource string) errorList {
	if subresource == "status" {
		return checkFinalizers(r)
	}
	return append(validateReplicaSet(r), sameSelector(r.Spec.Selector, old.Spec.Selector)...)
}

// validateStatefulSetUpdate lets only some of a stateful set's spec change.
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet, subresource string) errorList {
	errs := checkFinalizers(s)
	if subresource == "status" {
		return errs
	}
	spec, was := s.Spec.DeepCopy(), &old.Spec
	spec.Replicas, spec.Template, spec.UpdateStrategy, spec.MinReadySeconds = was.Replicas, was.Template, was.UpdateStrategy, was.MinReadySeconds
	spec.Ordinals, spec.RevisionHistoryLimit, spec.PersistentVolumeClaimRetentionPolicy = was.Ordinals, was.RevisionHistoryLimit, was.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(spec, was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
	}
	return errs
}

// checkSelector wants a selector that is valid and selects something less than everything.
func checkSelector(s *metav1.LabelSelector, of string, path *field.Path) errorList {
	if s == nil {
		return errorList{field.Required(path, "")}
	}
	errs := unversioned.ValidateLabelSelector(s, unversioned.LabelSelectorValidationOptions{}, path)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, s, "empty selector is invalid for "+of))
	}
	return errs
}

// checkSelected wants a template whose pods the selector selects, and which run until they are deleted.
func checkSelected(s *metav1.LabelSelector, template *corev1.PodTemplateSpec, spec *field.Path) errorList {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return errorList{field.Invalid(spec.Child("selector"), s, "invalid label selector")}
	}
	var errs errorList
	path := spec.Child("template")
	if !selector.Empty() && !selector.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, checkContainers(&template.Spec, path.Child("spec"))...)
	if p := template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), p, []string{string(corev1.RestartPolicyAlways)}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	return errs
}

func sameSelector(s, old *metav1.LabelSelector) errorList {
	return validation.ValidateImmutableField(s, old, field.NewPath("spec", "selector"))
}

// checkContainers wants a container, and a name and an image for each.
func checkContainers(spec *corev1.PodSpec, path *field.Path) errorList {
	if len(spec.Containers) == 0 {
		return errorList{field.Required(path.Child("containers"), "")}
	}
	var errs errorList
	seen := map[string]bool{}
	for i, c := range spec.Containers {
		at := path.Child("containers").Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			for _, msg := range utilvalidation.IsDNS1123Label(c.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), c.Name, msg))
			}
		}
		if c.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), ""))
		}
		if c.Name != "" && seen[c.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		seen[c.Name] = true
	}
	return errs
}

func validatePod(p *corev1.Pod) errorList {
	return append(checkFinalizers(p), checkContainers(&p.Spec, field.NewPath("spec"))...)
}

func validateRoleBindingUpdate(b, old *rbacv1.RoleBinding, _ string) errorList {
	return append(checkFinalizers(b), sameRole(b.RoleRef, old.RoleRef)...)
}

func validateClusterRoleBindingUpdate(b, old *rbacv1.ClusterRoleBinding, _ string) errorList {
	return append(checkFinalizers(b), sameRole(b.RoleRef, old.RoleRef)...)
}

func sameRole(ref, old rbacv1.RoleRef) errorList {
	if ref == old {
		return nil
	}
	// Kubernetes shows the fields of its internal type, which have no JSON names.
	shown := map[string]string{"APIGroup": ref.APIGroup, "Kind": ref.Kind, "Name": ref.Name}
	return errorList{field.Invalid(field.NewPath("roleRef"), shown, "cannot change roleRef")}
}
