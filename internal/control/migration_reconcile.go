package control

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is the next step of a migration.
type step int

const (
	nothing  step = iota
	begin         // it waits, and no other migration of its resource is running
	proceed       // it is running
	conclude      // it has ended, but its status does not show it yet
)

// next returns the next step of a migration, given all migrations. For each resource one migration runs at a time, the
// oldest waiting one first.
func next(m *migrationv1beta1.StorageVersionMigration, all []*migrationv1beta1.StorageVersionMigration) step {
	switch {
	case isRunning(m) && isTerminal(m):
		return conclude
	case isTerminal(m):
		return nothing
	case isRunning(m):
		return proceed
	}
	for _, other := range all {
		if other.Name == m.Name || other.Spec.Resource != m.Spec.Resource {
			continue
		}
		if isRunning(other) || !isTerminal(other) && older(other, m) {
			return nothing
		}
	}
	return begin
}

func older(a, b *migrationv1beta1.StorageVersionMigration) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

func isRunning(m *migrationv1beta1.StorageVersionMigration) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1beta1.MigrationRunning))
}

func isTerminal(m *migrationv1beta1.StorageVersionMigration) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1beta1.MigrationSucceeded)) ||
		meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1beta1.MigrationFailed))
}

func succeeded(m *migrationv1beta1.StorageVersionMigration) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1beta1.MigrationSucceeded))
}

// setCondition adds or changes a condition of a migration. Its time changes with its status only.
func setCondition(m *migrationv1beta1.StorageVersionMigration, c metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	meta.SetStatusCondition(&m.Status.Conditions, c)
}

// underWay is the condition of a migration that has begun and not ended.
func underWay(message string) metav1.Condition {
	return metav1.Condition{
		Type: string(migrationv1beta1.MigrationRunning), Status: metav1.ConditionTrue, Reason: "MigrationRunning",
		Message: message,
	}
}

// running returns Kubernetes' message of a running migration.
func running(done, of int, trouble error) string {
	text := "The migration is running"
	switch left := of - done; {
	case of > 0 && left > 0:
		text += fmt.Sprintf(", %d/%d objects not yet migrated", left, of)
	case of > 0:
		text += fmt.Sprintf(", %d objects verified migrated", of)
	}
	if trouble != nil {
		text += fmt.Sprintf("; transient error: %v", trouble)
	}
	return text
}

// markMigrating notes in a definition that the migration of that name has begun.
func markMigrating(def *apiextensionsv1.CustomResourceDefinition, migration string, now time.Time) {
	setMigrating(def, apiextensionsv1.ConditionTrue, "MigrationRunning",
		fmt.Sprintf("Migration %s is running", migration), now)
}

// markMigrated notes in a definition how its migration ended. After a success, and if the definition has not changed
// meanwhile, objects are stored in its storage version only.
func markMigrated(def *apiextensionsv1.CustomResourceDefinition, success bool, now time.Time) {
	same := false
	for _, c := range def.Status.Conditions {
		same = same || c.Type == apiextensionsv1.StorageMigrating && c.ObservedGeneration == def.Generation
	}
	switch {
	case !success:
		setMigrating(def, apiextensionsv1.ConditionFalse, "MigrationFailed", "The migration has failed", now)
	case !same:
		setMigrating(def, apiextensionsv1.ConditionFalse, "MigrationSucceeded",
			"The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
			now)
	default:
		setMigrating(def, apiextensionsv1.ConditionFalse, "MigrationSucceeded",
			"The migration has succeeded and the stored versions have been updated", now)
		def.Status.StoredVersions = []string{storageVersion(def)}
	}
}

func setMigrating(
	def *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string,
	now time.Time,
) {
	to := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.StorageMigrating, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), ObservedGeneration: def.Generation,
	}
	i := slices.IndexFunc(def.Status.Conditions,
		func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == to.Type })
	if i < 0 {
		def.Status.Conditions = append(def.Status.Conditions, to)
		return
	}
	def.Status.Conditions[i] = to
}

func storageVersion(def *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range def.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// automatic returns the migration for a definition with objects in other versions than its storage version, otherwise
// nil. There is one for each state of the definition's spec: a failed one is not repeated automatically.
func automatic(def *apiextensionsv1.CustomResourceDefinition) *migrationv1beta1.StorageVersionMigration {
	storage := storageVersion(def)
	if !established(def) || def.DeletionTimestamp != nil ||
		!slices.ContainsFunc(def.Status.StoredVersions, func(v string) bool { return v != storage }) {
		return nil
	}
	return &migrationv1beta1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", def.Name, def.Generation)},
		Spec: migrationv1beta1.StorageVersionMigrationSpec{
			Resource: metav1.GroupResource{Group: def.Spec.Group, Resource: def.Spec.Names.Plural},
		},
	}
}
