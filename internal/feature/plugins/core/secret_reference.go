package core

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// checkReferences refuses a pod that refers to secrets that its account does not.
func checkReferences(account *corev1.ServiceAccount, spec object) error {
	for _, v := range catalog.Objects(spec["volumes"]) {
		if secret := catalog.At(v, "secret"); secret != nil && !mountable(account, catalog.Text(secret, "secretName")) {
			return fmt.Errorf(
				"volume with secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret", catalog.Text(secret, "secretName"), account.Name)
		}
	}
	if err := checkContainers(account, "init container", catalog.Objects(spec["initContainers"])); err != nil {
		return err
	}
	if err := checkContainers(account, "container", catalog.Objects(spec["containers"])); err != nil {
		return err
	}
	for i, ref := range catalog.Objects(spec["imagePullSecrets"]) {
		name := catalog.Text(ref, "name")
		if !slices.ContainsFunc(account.ImagePullSecrets,
			func(r corev1.LocalObjectReference) bool { return r.Name == name }) {
			return fmt.Errorf(
				"imagePullSecrets[%d].name=\"%s\" is not allowed because service account %s does not reference that imagePullSecret", i, name, account.Name)
		}
	}
	return nil
}

// checkContainers is checkReferences for the environment of containers. noun names their kind in errors.
func checkContainers(account *corev1.ServiceAccount, noun string, containers []object) error {
	for _, c := range containers {
		for _, env := range catalog.Objects(c["env"]) {
			if ref := catalog.At(env, "valueFrom", "secretKeyRef"); ref != nil &&
				!mountable(account, catalog.Text(ref, "name")) {
				return fmt.Errorf(
					"%s %s with envVar %s referencing secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
					noun, catalog.Text(c, "name"), catalog.Text(env, "name"), catalog.Text(ref, "name"), account.Name)
			}
		}
		for _, from := range catalog.Objects(c["envFrom"]) {
			if ref := catalog.At(from, "secretRef"); ref != nil && !mountable(account, catalog.Text(ref, "name")) {
				return fmt.Errorf(
					"%s %s with envFrom referencing secret.secretName=\"%s\" is not allowed because service account %s does not reference that secret",
					noun, catalog.Text(c, "name"), catalog.Text(ref, "name"), account.Name)
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
	{"cephfs", "secretRef", "name"}, {"cinder", "secretRef", "name"}, {"flexVolume", "secretRef", "name"},
	{"rbd", "secretRef", "name"},
	{"scaleIO", "secretRef", "name"}, {"iscsi", "secretRef", "name"}, {"storageos", "secretRef", "name"},
}

// refersToSecret reports whether a pod references any secret.
func refersToSecret(spec object) bool {
	if slices.ContainsFunc(catalog.Objects(spec["imagePullSecrets"]),
		func(r object) bool { return catalog.Text(r, "name") != "" }) {
		return true
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range catalog.Objects(spec[list]) {
			from := slices.ContainsFunc(catalog.Objects(c["envFrom"]),
				func(e object) bool { return catalog.Text(e, "secretRef", "name") != "" })
			one := slices.ContainsFunc(catalog.Objects(c["env"]),
				func(e object) bool { return catalog.Text(e, "valueFrom", "secretKeyRef", "name") != "" })
			if from || one {
				return true
			}
		}
	}
	for _, v := range catalog.Objects(spec["volumes"]) {
		if slices.ContainsFunc(secretsOfVolumes, func(path []string) bool { return catalog.Text(v, path...) != "" }) ||
			slices.ContainsFunc(catalog.Objects(catalog.At(v, "projected")["sources"]),
				func(s object) bool { return catalog.Text(s, "secret", "name") != "" }) {
			return true
		}
	}
	return false
}
