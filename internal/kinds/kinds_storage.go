package kinds

import (
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// storageKinds are those that describe what nodes offer: storage.k8s.io, node.k8s.io, scheduling.k8s.io,
// resource.k8s.io.
func storageKinds() []kind {
	return []kind{
		storageClassKind(),
		volumeAttributesClassKind(),
		volumeAttachmentKind(),
		csiDriverKind(),
		csiNodeKind(),
		csiStorageCapacityKind(),
		runtimeClassKind(),
		priorityClassKind(),
		deviceClassKind(),
		resourceClaimKind(),
		resourceClaimTemplateKind(),
		resourceSliceKind(),
	}
}

func storageClassKind() kind {
	return of[storagev1.StorageClass](kind{
		group: storageV1, kind: "StorageClass", plural: "storageclasses", short: []string{"sc"}, clusterScoped: true,
		returnsDeleted: true,
		rules: &catalog.Strategy{
			Cells: printed(storageClassCells), VisibleOnReturn: true, UnconditionalUpdate: true,
		},
	})
}

func volumeAttributesClassKind() kind {
	return of[storagev1.VolumeAttributesClass](kind{
		group: storageV1, kind: "VolumeAttributesClass", plural: "volumeattributesclasses", short: []string{"vac"},
		clusterScoped: true, returnsDeleted: true,
		also:  onDemand[storagev1beta1.VolumeAttributesClass](storageV1beta1),
		rules: &catalog.Strategy{Cells: printed(attributesClassCells), UnconditionalUpdate: true},
	})
}

func volumeAttachmentKind() kind {
	return of[storagev1.VolumeAttachment](kind{
		group: storageV1, kind: "VolumeAttachment", plural: "volumeattachments", clusterScoped: true, status: true,
		statusOnly: true, returnsDeleted: true,
		rules: &catalog.Strategy{Cells: printed(attachmentCells)},
	})
}

func csiDriverKind() kind {
	return of[storagev1.CSIDriver](kind{
		group: storageV1, kind: "CSIDriver", plural: "csidrivers", clusterScoped: true, returnsDeleted: true,
		rules: &catalog.Strategy{
			Cells: printed(csiDriverCells), PrepareCreate: prepareDriverCreate, PrepareUpdate: prepareDriverUpdate,
		},
	})
}

func csiNodeKind() kind {
	return of[storagev1.CSINode](kind{
		group: storageV1, kind: "CSINode", plural: "csinodes", clusterScoped: true, returnsDeleted: true,
		rules: &catalog.Strategy{Cells: printed(csiNodeCells)},
	})
}

func csiStorageCapacityKind() kind {
	return of[storagev1.CSIStorageCapacity](kind{
		// it has columns in Kubernetes that are not in use
		group: storageV1, kind: "CSIStorageCapacity", plural: "csistoragecapacities",
	})
}

func runtimeClassKind() kind {
	return of[nodev1.RuntimeClass](kind{
		group: nodeV1, kind: "RuntimeClass", anyFinalizer: true, plural: "runtimeclasses", clusterScoped: true,
		rules: &catalog.Strategy{Cells: printed(runtimeClassCells), VisibleOnReturn: true, CreateOnUpdate: true},
	})
}

func priorityClassKind() kind {
	return of[schedulingv1.PriorityClass](kind{
		group: schedulingV1, kind: "PriorityClass", plural: "priorityclasses", short: []string{"pc"},
		clusterScoped: true, generation: true,
		rules: &catalog.Strategy{
			Cells: printed(priorityClassCells), PrepareUpdate: keepGeneration, Keep: keepSystemClass,
			VisibleOnReturn: true, UnconditionalUpdate: true,
		},
	})
}

func deviceClassKind() kind {
	return of[resourcev1.DeviceClass](kind{
		group: resourceV1, kind: "DeviceClass", plural: "deviceclasses", clusterScoped: true, generation: true,
		returnsDeleted: true,
		also:           onDemand[resourcev1beta2.DeviceClass](resourceV1beta2),
		rules:          &catalog.Strategy{Cells: nameAndAge, ValidName: nameIsLong, UnconditionalUpdate: true},
	})
}

func resourceClaimKind() kind {
	return of[resourcev1.ResourceClaim](kind{
		group: resourceV1, kind: "ResourceClaim", plural: "resourceclaims", status: true, statusOnly: true,
		returnsDeleted: true,
		also:           onDemand[resourcev1beta2.ResourceClaim](resourceV1beta2),
		rules: &catalog.Strategy{
			Cells: printed(resourceClaimCells), Default: defaultResourceClaim, PrepareUpdate: prepareDeviceClaimUpdate,
			ValidateIn: claimPrivileges, UnconditionalUpdate: true,
		},
	})
}

func resourceClaimTemplateKind() kind {
	return of[resourcev1.ResourceClaimTemplate](kind{
		group: resourceV1, kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates", returnsDeleted: true,
		also: onDemand[resourcev1beta2.ResourceClaimTemplate](resourceV1beta2),
		rules: &catalog.Strategy{
			Cells: nameAndAge, Default: defaultResourceClaimTemplate, ValidateIn: templatePrivileges,
			UnconditionalUpdate: true,
		},
	})
}

func resourceSliceKind() kind {
	return of[resourcev1.ResourceSlice](kind{
		group: resourceV1, kind: "ResourceSlice", plural: "resourceslices", clusterScoped: true, generation: true,
		returnsDeleted: true,
		also:           onDemand[resourcev1beta2.ResourceSlice](resourceV1beta2),
		rules: &catalog.Strategy{Cells: printed(resourceSliceCells), PrepareCreate: prepareDevicesCreate,
			PrepareUpdate: prepareDevicesUpdate, UnconditionalUpdate: true,
			FieldLabels:  fields("spec.nodeName", "spec.driver"),
			UnknownField: "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s"},
	})
}
