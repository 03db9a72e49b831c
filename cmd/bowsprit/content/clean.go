package content

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// passing reports whether the objects of a resource describe a current state rather than a desired one, or derive from
// other objects.
func passing(r connect.Resource) bool {
	switch r.Group {
	case "":
		return slices.Contains([]string{"events", "endpoints", "componentstatuses", "nodes"}, r.Resource)
	case "events.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "metrics.k8s.io":
		return true
	case "apps":
		return r.Resource == "controllerrevisions"
	case "networking.k8s.io":
		return r.Resource == "ipaddresses"
	case "certificates.k8s.io":
		return r.Resource == "certificatesigningrequests" || r.Resource == "podcertificaterequests"
	case "internal.apiserver.k8s.io":
		return true
	}
	return !slices.Contains(r.Verbs, "create")
}

// made reports whether the server or a controller has made an object, and would make it again.
func made(r connect.Resource, obj *unstructured.Unstructured) bool {
	if metav1.GetControllerOf(obj) != nil || obj.GetDeletionTimestamp() != nil {
		return true
	}
	labels, annotations, name := obj.GetLabels(), obj.GetAnnotations(), obj.GetName()
	switch r.Group + "/" + r.Resource {
	case "/namespaces":
		return name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-")
	case "/services":
		return name == "kubernetes" && obj.GetNamespace() == metav1.NamespaceDefault
	case "/serviceaccounts":
		return name == "default"
	case "/configmaps":
		return name == "kube-root-ca.crt" || slices.Contains(serverConfigMaps, obj.GetNamespace()+"/"+name)
	case "rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings":
		if name == "kubeadm:bootstrap-signer-clusterinfo" && obj.GetNamespace() == metav1.NamespacePublic {
			return true
		}
	case "/secrets":
		kind, _, _ := unstructured.NestedString(obj.Object, "type")
		return kind == string(corev1.SecretTypeServiceAccountToken) || kind == string(corev1.SecretTypeBootstrapToken)
	case "scheduling.k8s.io/priorityclasses":
		return strings.HasPrefix(name, "system-")
	case "certificates.k8s.io/clustertrustbundles":
		signer, _, _ := unstructured.NestedString(obj.Object, "spec", "signerName")
		return signer == "kubernetes.io/kube-apiserver-serving"
	case "networking.k8s.io/servicecidrs":
		return name == "kubernetes"
	case "apiregistration.k8s.io/apiservices":
		return labels["kube-aggregator.kubernetes.io/automanaged"] != ""
	}
	return labels["kubernetes.io/bootstrapping"] != "" ||
		annotations[flowcontrolv1.AutoUpdateAnnotationKey] == "true"
}

// serverConfigMaps are the ConfigMaps that the server maintains.
var serverConfigMaps = []string{
	"kube-system/extension-apiserver-authentication",
	"kube-system/kube-apiserver-legacy-service-account-token-tracking",
	"kube-public/cluster-info",
}

// serverFields are the fields of the metadata that the server writes.
var serverFields = []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds"}

// clean removes the fields that the server has added.
func clean(obj *unstructured.Unstructured) *unstructured.Unstructured {
	for _, field := range serverFields {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if len(obj.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
	delete(obj.Object, "status")
	join(obj, "")
	labels := obj.GetLabels()
	if obj.GetKind() == "Namespace" && labels[corev1.LabelMetadataName] == obj.GetName() {
		delete(labels, corev1.LabelMetadataName) // the server sets it again
		if obj.SetLabels(labels); len(labels) == 0 {
			unstructured.RemoveNestedField(obj.Object, "metadata", "labels")
		}
		unstructured.RemoveNestedField(obj.Object, "spec", "finalizers")
		if spec, _, _ := unstructured.NestedMap(obj.Object, "spec"); len(spec) == 0 {
			delete(obj.Object, "spec")
		}
	}
	return obj
}
