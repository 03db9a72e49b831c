package kinds

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// coreKinds are those of the core group.
func coreKinds() []kind {
	return []kind{
		namespaceKind(),
		configMapKind(),
		secretKind(),
		eventKind(),
		serviceAccountKind(),
		podKind(),
		bindingKind(),
		componentStatusKind(),
		podTemplateKind(),
		replicationControllerKind(),
		serviceKind(),
		endpointsKind(),
		nodeKind(),
		persistentVolumeKind(),
		persistentVolumeClaimKind(),
		limitRangeKind(),
		resourceQuotaKind(),
	}
}

func namespaceKind() kind {
	return of[corev1.Namespace](kind{
		group: coreV1, kind: "Namespace", plural: "namespaces", short: []string{"ns"}, returnsDeleted: true,
		clusterScoped: true, status: true, noDeleteCollection: true,
		subresources: []catalog.Subresource{object("Namespace", "finalize", "update")},
		reaches:      map[string]catalog.ResetFields{"finalize": except("status")},
		rules: &catalog.Strategy{
			ValidName:           validation.ValidateNamespaceName,
			Default:             defaultNamespace,
			PrepareCreate:       prepareNamespaceCreate,
			PrepareUpdate:       prepareNamespaceUpdate,
			Validate:            judge(validateNamespace),
			ValidateUpdate:      judgeUpdate(validateNamespaceUpdate),
			PrepareDelete:       prepareNamespaceDelete,
			FencesContents:      true,
			UnconditionalUpdate: true,
			FieldLabels:         fields("status.phase"),
			Cells:               namespaceCells,
		},
	})
}

func configMapKind() kind {
	return of[corev1.ConfigMap](kind{
		group: coreV1, kind: "ConfigMap", plural: "configmaps", short: []string{"cm"},
		rules: &catalog.Strategy{
			Validate:            judge(validateConfigMap),
			ValidateUpdate:      judgeUpdate(validateConfigMapUpdate),
			UnconditionalUpdate: true,
			Cells:               configMapCells,
		},
	})
}

func secretKind() kind {
	return of[corev1.Secret](kind{
		group: coreV1, kind: "Secret", plural: "secrets",
		rules: &catalog.Strategy{
			Default:             defaultSecret,
			Validate:            judge(validateSecret),
			ValidateUpdate:      judgeUpdate(validateSecretUpdate),
			Warnings:            warnSecret,
			UnconditionalUpdate: true,
			FieldLabels:         fields("type"),
			Cells:               secretCells,
		},
	})
}

func eventKind() kind {
	return of[corev1.Event](kind{
		group: coreV1, kind: "Event", plural: "events", short: []string{"ev"},
		rules: &catalog.Strategy{
			//lint:ignore SA1019 kube's rule for event names, kept where kube keeps it
			ValidName:           path.ValidatePathSegmentName,
			MetadataLast:        true,
			Validate:            judge(validateEvent),
			ValidateUpdate:      judgeUpdate(func(e, _ *corev1.Event, _ string) errorList { return validateEvent(e) }),
			UnconditionalUpdate: true,
			CreateOnUpdate:      true,
			TTL:                 time.Hour, // kube's --event-ttl
			Dependents:          catalog.NoDependents,
			FieldLabels:         eventFields(),
			Cells:               eventCells,
		},
	})
}

func serviceAccountKind() kind {
	return of[corev1.ServiceAccount](kind{
		group: coreV1, kind: "ServiceAccount", plural: "serviceaccounts", short: []string{"sa"}, returnsDeleted: true,
		subresources: []catalog.Subresource{tokenSubresource()},
		rules: &catalog.Strategy{
			ValidName:           validation.ValidateServiceAccountName,
			Cells:               nameAndAge,
			PrepareCreate:       prepareServiceAccountCreate,
			PrepareUpdate:       prepareServiceAccountUpdate,
			Warnings:            warnServiceAccount,
			VisibleOnReturn:     true,
			UnconditionalUpdate: true,
		},
	})
}

func podKind() kind {
	return of[corev1.Pod](kind{
		group: coreV1, kind: "Pod", podSpec: []string{"spec"}, plural: "pods", short: []string{"po"}, categories: all,
		status: true, generation: true, returnsDeleted: true,
		subresources: podSubresources(),
		reaches: map[string]catalog.ResetFields{
			"status":              except("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
			"ephemeralcontainers": only("spec.ephemeralContainers"),
			"resize": only("spec.containers.*.resources", "spec.containers.*.resizePolicy",
				"spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy"),
		},
		rules: &catalog.Strategy{
			Cells:               printed(podCells),
			Default:             defaultPod,
			PrepareCreate:       preparePodCreate,
			PrepareUpdate:       preparePodUpdate,
			GracePeriod:         podGracePeriod,
			UnconditionalUpdate: true,
			FieldLabels:         podFields(),
		},
	})
}

func bindingKind() kind {
	return of[corev1.Binding](kind{group: coreV1, kind: "Binding", plural: "bindings", virtual: true})
}

func componentStatusKind() kind {
	return of[corev1.ComponentStatus](kind{
		group: coreV1, kind: "ComponentStatus", deprecated: "v1 ComponentStatus is deprecated in v1.19+",
		plural: "componentstatuses", short: []string{"cs"},
		clusterScoped: true, virtual: true, verbs: []string{"get", "list"},
		rules: &catalog.Strategy{Cells: printed(componentCells)},
	})
}

func podTemplateKind() kind {
	return of[corev1.PodTemplate](kind{
		group: coreV1, kind: "PodTemplate", podSpec: []string{"template", "spec"}, plural: "podtemplates",
		generation: true, returnsDeleted: true,
		rules: &catalog.Strategy{
			Cells: printed(podTemplateCells), Default: defaultPodTemplate, UnconditionalUpdate: true,
		},
	})
}

func replicationControllerKind() kind {
	return of[corev1.ReplicationController](kind{
		group: coreV1, kind: "ReplicationController", podSpec: templateSpec, plural: "replicationcontrollers",
		short: []string{"rc"}, categories: all,
		prefix: "controllers", status: true, generation: true,
		scale: controllerReplicas(),
		rules: &catalog.Strategy{Cells: printed(replicationControllerCells), ValidName: nameIsLong,
			Default: defaultReplicationController, UnconditionalUpdate: true, Dependents: catalog.OrphanDependents,
			FieldLabels: map[string]func(catalog.Object) string{"status.replicas": countAt("status", "replicas")}},
	})
}

func serviceKind() kind {
	return of[corev1.Service](kind{
		group: coreV1, kind: "Service", plural: "services", short: []string{"svc"}, categories: all,
		prefix: "services/specs", status: true, returnsDeleted: true,
		subresources: []catalog.Subresource{other("proxy", "", "", "ServiceProxyOptions", proxied...)},
		rules: &catalog.Strategy{
			Cells:         printed(serviceCells),
			Default:       defaultService,
			PrepareCreate: prepareServiceCreate,
			PrepareUpdate: prepareServiceUpdate,
			ValidName:     validation.NameIsDNSLabel, UnconditionalUpdate: true, CreateOnUpdate: true,
			FieldLabels: fields("spec.clusterIP", "spec.type"),
		},
	})
}

func endpointsKind() kind {
	//lint:ignore SA1019 clients still read and write them
	return of[corev1.Endpoints](kind{
		group: coreV1, kind: "Endpoints",
		deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", plural: "endpoints",
		short: []string{"ep"}, prefix: "services/endpoints",
		rules: &catalog.Strategy{Cells: printed(endpointsCells), UnconditionalUpdate: true, CreateOnUpdate: true},
	})
}

func nodeKind() kind {
	return of[corev1.Node](kind{
		group: coreV1, kind: "Node", plural: "nodes", short: []string{"no"}, clusterScoped: true, prefix: "minions",
		status:       true,
		subresources: []catalog.Subresource{other("proxy", "", "", "NodeProxyOptions", proxied...)},
		rules: &catalog.Strategy{
			Cells:               printed(nodeCells),
			Default:             defaultNode,
			PrepareUpdate:       prepareNodeUpdate,
			PrepareCreate:       prepareNodeCreate,
			UnconditionalUpdate: true,
			FieldLabels: map[string]func(catalog.Object) string{
				"spec.unschedulable": truthAt("spec", "unschedulable"),
			},
		},
	})
}

func persistentVolumeKind() kind {
	return of[corev1.PersistentVolume](kind{
		group: coreV1, kind: "PersistentVolume", plural: "persistentvolumes", short: []string{"pv"},
		clusterScoped: true, status: true, returnsDeleted: true,
		rules: &catalog.Strategy{
			Cells: printed(volumeCells), PrepareCreate: prepareVolumeCreate, PrepareUpdate: prepareVolumeUpdate,
			UnconditionalUpdate: true,
		},
	})
}

func persistentVolumeClaimKind() kind {
	return of[corev1.PersistentVolumeClaim](kind{
		group: coreV1, kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", short: []string{"pvc"},
		status: true, returnsDeleted: true,
		rules: &catalog.Strategy{
			Cells: printed(claimCells), PrepareCreate: prepareClaimCreate, PrepareUpdate: prepareClaimUpdate,
			UnconditionalUpdate: true,
		},
	})
}

func limitRangeKind() kind {
	return of[corev1.LimitRange](kind{
		group: coreV1, kind: "LimitRange", plural: "limitranges", short: []string{"limits"},
		rules: &catalog.Strategy{
			Default: defaultLimitRange, PrepareCreate: nameLimitRange, VisibleOnReturn: true, UnconditionalUpdate: true,
			CreateOnUpdate: true,
		},
	})
}

func resourceQuotaKind() kind {
	return of[corev1.ResourceQuota](kind{
		group: coreV1, kind: "ResourceQuota", plural: "resourcequotas", short: []string{"quota"}, status: true,
		returnsDeleted: true,
		rules:          &catalog.Strategy{Cells: printed(quotaCells), UnconditionalUpdate: true},
	})
}

// proxied are the verbs of subresources that pass requests on.
var proxied = []string{"create", "delete", "get", "patch", "update"}

func podSubresources() []catalog.Subresource {
	return []catalog.Subresource{
		other("attach", "", "", "PodAttachOptions", "create", "get"),
		other("binding", "", "", "Binding", "create"),
		object("Pod", "ephemeralcontainers", views...),
		other("eviction", "policy", "v1", "Eviction", "create"),
		other("exec", "", "", "PodExecOptions", "create", "get"),
		other("log", "", "", "Pod", "get"),
		other("portforward", "", "", "PodPortForwardOptions", "create", "get"),
		other("proxy", "", "", "PodProxyOptions", proxied...),
		object("Pod", "resize", views...),
	}
}
