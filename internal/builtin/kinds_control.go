package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// controlKinds are those by which the parts of a control plane arrange things among each other.
func controlKinds() []kind {
	return []kind{
		of[coordinationv1.Lease](kind{
			group: coordinationV1, kind: "Lease", plural: "leases",
			rules: &catalog.Rules{
				Validate:       judge(validateLease),
				ValidateUpdate: judgeUpdate(func(l, _ *coordinationv1.Lease, _ string) errorList { return validateLease(l) }),
				CreateOnUpdate: true,
				Cells:          leaseCells,
			},
		}),
		of[flowcontrolv1.FlowSchema](kind{
			group: flowcontrolV1, kind: "FlowSchema", plural: "flowschemas", clusterScoped: true, status: true, statusOnly: true, generation: true,
			rules: &catalog.Rules{Cells: printed(flowSchemaCells), Rank: matchingPrecedence, UnconditionalUpdate: true},
		}),
		of[flowcontrolv1.PriorityLevelConfiguration](kind{
			group: flowcontrolV1, kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations", clusterScoped: true, status: true, statusOnly: true, generation: true,
			rules: &catalog.Rules{Cells: printed(priorityLevelCells), UnconditionalUpdate: true},
		}),
		of[storagemigrationv1beta1.StorageVersionMigration](kind{
			group: storagemigrationV1beta1, kind: "StorageVersionMigration", plural: "storageversionmigrations", clusterScoped: true, status: true, statusOnly: true,
			rules: &catalog.Rules{Validate: judge(validateMigration), ValidateUpdate: judgeUpdate(validateMigrationUpdate), Cells: printed(migrationCells)},
		}),
	}
}
