package plugin

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// checkReferences refuses a pod that refers to secrets that its account does not.
func checkReferences(account *corev1.ServiceAccount, spec object) error {
	for _, v := range objects(spec["volumes"]) {
		if secret := at(v, "secret"); secret != nil && !mountable(account, text(secret, "secretName")) {
			return fmt.Errorf("volume with secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret", text(secret, "secretName"), account.Name)
		}
	}
	if err := checkContainers(account, "init container", objects(spec["initContainers"])); err != nil {
		return err
	}
	if err := checkContainers(account, "container", objects(spec["containers"])); err != nil {
		return err
	}
	for i, ref := range objects(spec["imagePullSecrets"]) {
		name := text(ref, "name")
		if !slices.ContainsFunc(account.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == name }) {
			return fmt.Errorf("imagePullSecrets[%d].name=\"%s\" is not allowed because service account %s does not reference that imagePullSecret", i, name, account.Name)
		}
	}
	return nil
}

// checkContainers is checkReferences for the environment of containers, which what calls in an error.
func checkContainers(account *corev1.ServiceAccount, what string, containers []object) error {
	for _, c := range containers {
		for _, env := range objects(c["env"]) {
			if ref := at(env, "valueFrom", "secretKeyRef"); ref != nil && !mountable(account, text(ref, "name")) {
				return fmt.Errorf("%s %s with envVar %s referencing secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
					what, text(c, "name"), text(env, "name"), text(ref, "name"), account.Name)
			}
		}
		for _, from := range objects(c["envFrom"]) {
			if ref := at(from, "secretRef"); ref != nil && !mountable(account, text(ref, "name")) {
				return fmt.Errorf("%s %s with envFrom referencing secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
					what, text(c, "name"), text(ref, "name"), account.Name)
			}
		}
	}
	return nil
}

func mountable(account *corev1.ServiceAccount, secret string) bool {
	return slices.ContainsFunc(account.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secret })
}

// secretsOfVolumes are the paths in a volume where the name of a secret may be.
var secretsOfVolumes = [][]string{
	{"azureFile", "secretName"}, {"secret", "secretName"}, {"csi", "nodePublishSecretRef", "name"},
	{"cephfs", "secretRef", "name"}, {"cinder", "secretRef", "name"}, {"flexVolume", "secretRef", "name"}, {"rbd", "secretRef", "name"},
	{"scaleIO", "secretRef", "name"}, {"iscsi", "secretRef", "name"}, {"storageos", "secretRef", "name"},
}

// refersToSecret tells whether a pod names any secret, wherever that is possible.
func refersToSecret(spec object) bool {
	if slices.ContainsFunc(objects(spec["imagePullSecrets"]), func(r object) bool { return text(r, "name") != "" }) {
		return true
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range objects(spec[list]) {
			from := slices.ContainsFunc(objects(c["envFrom"]), func(e object) bool { return text(e, "secretRef", "name") != "" })
			one := slices.ContainsFunc(objects(c["env"]), func(e object) bool { return text(e, "valueFrom", "secretKeyRef", "name") != "" })
			if from || one {
				return true
			}
		}
	}
	for _, v := range objects(spec["volumes"]) {
		if slices.ContainsFunc(secretsOfVolumes, func(path []string) bool { return text(v, path...) != "" }) ||
			slices.ContainsFunc(objects(at(v, "projected")["sources"]), func(s object) bool { return text(s, "secret", "name") != "" }) {
			return true
		}
	}
	return false
}
