package kinds

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// controlKinds are those by which the parts of a control plane arrange things among each other.
func controlKinds() []kind {
	return []kind{
		leaseKind(),
		leaseCandidateKind(),
		flowSchemaKind(),
		priorityLevelConfigurationKind(),
		storageVersionMigrationKind(),
	}
}

func leaseKind() kind {
	return of[coordinationv1.Lease](kind{
		group: coordinationV1, kind: "Lease", plural: "leases",
		rules: &catalog.Strategy{
			Validate: judge(validateLease),
			ValidateUpdate: judgeUpdate(func(l, _ *coordinationv1.Lease, _ string) errorList {
				return validateLease(l)
			}),
			PrepareCreate:  func(obj catalog.Object, _ catalog.Env) { dropCoordination(obj, nil) },
			PrepareUpdate:  func(obj, old catalog.Object, _ string, _ catalog.Env) { dropCoordination(obj, old) },
			CreateOnUpdate: true,
			Cells:          leaseCells,
		},
	})
}

func leaseCandidateKind() kind {
	return of[coordinationv1beta1.LeaseCandidate](kind{
		group: coordinationV1beta1, kind: "LeaseCandidate", plural: "leasecandidates", onDemand: true,
		deprecated: outdated(coordinationV1beta1, new(coordinationv1beta1.LeaseCandidate)),
		also:       onDemand[coordinationv1alpha2.LeaseCandidate](coordinationV1alpha2),
		rules: &catalog.Strategy{
			ValidName:      nameIsConfigKey,
			Validate:       judge(validateCandidate),
			ValidateUpdate: judgeUpdate(validateCandidateUpdate),
			CreateOnUpdate: true,
			Cells:          printed(candidateCells),
		},
	})
}

func flowSchemaKind() kind {
	return of[flowcontrolv1.FlowSchema](kind{
		group: flowcontrolV1, kind: "FlowSchema", plural: "flowschemas", clusterScoped: true, status: true,
		statusOnly: true, generation: true,
		rules: &catalog.Strategy{Cells: printed(flowSchemaCells), Rank: matchingPrecedence, UnconditionalUpdate: true},
	})
}

func priorityLevelConfigurationKind() kind {
	return of[flowcontrolv1.PriorityLevelConfiguration](kind{
		group: flowcontrolV1, kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations",
		clusterScoped: true, status: true, statusOnly: true, generation: true,
		rules: &catalog.Strategy{Cells: printed(priorityLevelCells), UnconditionalUpdate: true},
	})
}

func storageVersionMigrationKind() kind {
	return of[storagemigrationv1beta1.StorageVersionMigration](kind{
		group: storagemigrationV1beta1, kind: "StorageVersionMigration", plural: "storageversionmigrations",
		clusterScoped: true, status: true, statusOnly: true,
		rules: &catalog.Strategy{
			Validate: judge(validateMigration), ValidateUpdate: judgeUpdate(validateMigrationUpdate),
			Cells: printed(migrationCells),
		},
	})
}
