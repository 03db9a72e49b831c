package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// Needs reports whether a pod needs an object of a resource, such as "secrets", in its namespace.
func Needs(pod *corev1.Pod, resource string) bool {
	return slices.ContainsFunc(needsOf(pod), func(n need) bool { return n.Resource == resource })
}

// needsOf returns the objects of its namespace that a pod needs.
func needsOf(pod *corev1.Pod) []need {
	var all []need
	add := func(resource, name string) {
		if name != "" {
			all = append(all, need{resource, name})
		}
	}
	spec := &pod.Spec
	add("serviceaccounts", spec.ServiceAccountName)
	for _, s := range spec.ImagePullSecrets {
		add("secrets", s.Name)
	}
	for i := range spec.InitContainers {
		environment(spec.InitContainers[i].EnvFrom, spec.InitContainers[i].Env, add)
	}
	for i := range spec.Containers {
		environment(spec.Containers[i].EnvFrom, spec.Containers[i].Env, add)
	}
	for i := range spec.EphemeralContainers {
		environment(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env, add)
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		mounted(&v.VolumeSource, add)
		switch {
		case v.PersistentVolumeClaim != nil:
			add("persistentvolumeclaims", v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			add("persistentvolumeclaims", ephemeral.VolumeClaimName(pod, v))
		}
	}
	claims(pod, add)
	return all
}

func environment(from []corev1.EnvFromSource, env []corev1.EnvVar, add func(resource, name string)) {
	for _, e := range from {
		if e.SecretRef != nil {
			add("secrets", e.SecretRef.Name)
		}
		if e.ConfigMapRef != nil {
			add("configmaps", e.ConfigMapRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("secrets", r.Name)
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("configmaps", r.Name)
		}
	}
}

// mounted finds the secrets and config maps of a volume. Of several sources, which are invalid, the first counts.
func mounted(v *corev1.VolumeSource, add func(resource, name string)) {
	local := func(r *corev1.LocalObjectReference) {
		if r != nil {
			add("secrets", r.Name)
		}
	}
	switch {
	case v.AzureFile != nil:
		add("secrets", v.AzureFile.SecretName)
	case v.CephFS != nil:
		local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		local(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		local(v.FlexVolume.SecretRef)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				add("secrets", s.Secret.Name)
			}
		}
	case v.RBD != nil:
		local(v.RBD.SecretRef)
	case v.Secret != nil:
		add("secrets", v.Secret.SecretName)
	case v.ScaleIO != nil:
		local(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		local(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		local(v.StorageOS.SecretRef)
	case v.CSI != nil:
		local(v.CSI.NodePublishSecretRef)
	}
	switch {
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add("configmaps", s.ConfigMap.Name)
			}
		}
	case v.ConfigMap != nil:
		add("configmaps", v.ConfigMap.Name)
	}
}

// claims finds the resource claims of a pod: the ones that it names, and the ones created for it.
func claims(pod *corev1.Pod, add func(resource, name string)) {
	for _, c := range pod.Spec.ResourceClaims {
		switch {
		case c.ResourceClaimName != nil:
			add("resourceclaims", *c.ResourceClaimName)
		case c.ResourceClaimTemplateName != nil:
			for _, s := range pod.Status.ResourceClaimStatuses {
				if s.Name == c.Name {
					if s.ResourceClaimName != nil {
						add("resourceclaims", *s.ResourceClaimName)
					}
					break
				}
			}
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		add("resourceclaims", s.ResourceClaimName)
	}
}

// volumeSecrets returns the secrets, by namespace and name, that a node needs to mount a volume. Volumes of older
// servers have their secrets in the namespace of the claim.
func volumeSecrets(v *corev1.PersistentVolumeSource, claimNamespace string) (all [][2]string) {
	add := func(r *corev1.SecretReference, otherwise string) {
		if r == nil || r.Name == "" {
			return
		}
		if r.Namespace != "" {
			otherwise = r.Namespace
		}
		all = append(all, [2]string{otherwise, r.Name})
	}
	switch {
	case v.AzureFile != nil:
		r := corev1.SecretReference{Name: v.AzureFile.SecretName}
		if v.AzureFile.SecretNamespace != nil {
			r.Namespace = *v.AzureFile.SecretNamespace
		}
		add(&r, claimNamespace)
	case v.CephFS != nil:
		add(v.CephFS.SecretRef, claimNamespace)
	case v.Cinder != nil:
		add(v.Cinder.SecretRef, "")
	case v.FlexVolume != nil:
		add(v.FlexVolume.SecretRef, claimNamespace)
	case v.RBD != nil:
		add(v.RBD.SecretRef, claimNamespace)
	case v.ScaleIO != nil:
		add(v.ScaleIO.SecretRef, claimNamespace)
	case v.ISCSI != nil:
		add(v.ISCSI.SecretRef, claimNamespace)
	case v.StorageOS != nil:
		if r := v.StorageOS.SecretRef; r != nil {
			add(&corev1.SecretReference{Namespace: r.Namespace, Name: r.Name}, "")
		}
	case v.CSI != nil:
		add(v.CSI.NodePublishSecretRef, "")
		add(v.CSI.NodeStageSecretRef, "")
		add(v.CSI.NodeExpandSecretRef, "")
	}
	return all
}
