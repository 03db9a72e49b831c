package storagemigration

import (
	"strconv"
	"strings"

	migrationv1 "k8s.io/api/storagemigration/v1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func storageVersionMigrationKind() rule.Kind {
	return rule.Of[migrationv1.StorageVersionMigration](rule.Kind{
		Group: storagemigrationV1, Kind: "StorageVersionMigration", AnyFinalizer: true,
		Plural:        "storageversionmigrations",
		ClusterScoped: true, Status: true, StatusOnly: true,
		Also: rule.OnDemand[migrationv1beta1.StorageVersionMigration](storagemigrationV1beta1),
		Form: rule.StoredAs("storagemigration.k8s.io", "v1", "v1beta1"),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(migrationCells),
		},
	})
}

func migrationCells(m *migrationv1.StorageVersionMigration, _ catalog.Env) []any {
	state := "Unknown"
	for _, c := range m.Status.Conditions {
		switch migrationv1.MigrationConditionType(c.Type) {
		case migrationv1.MigrationRunning, migrationv1.MigrationFailed,
			migrationv1.MigrationSucceeded:
			if c.Status == metav1.ConditionTrue {
				state = c.Type
			}
		}
	}
	gr := schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
	return []any{m.Name, gr.String(), state}
}

var (
	storagemigrationV1      = rule.Group{Name: "storagemigration.k8s.io", Version: "v1", Priority: 15800, Rank: 15}
	storagemigrationV1beta1 = rule.Group{Name: "storagemigration.k8s.io", Version: "v1beta1", Priority: 15800, Rank: 9}
)

func validateMigration(m *migrationv1.StorageVersionMigration) (errs field.ErrorList) {
	path := field.NewPath("spec", "resource")
	if name := m.Spec.Resource.Resource; name == "" {
		errs = append(errs, field.Required(path.Child("resource"), "resource is required to be set"))
	} else if wrong := validation.IsDNS1035Label(name); len(wrong) > 0 {
		errs = append(errs, field.Invalid(path.Child("resource"), name, strings.Join(wrong, ",")))
	}
	if group := m.Spec.Resource.Group; group != "" {
		if wrong := validation.IsDNS1123Subdomain(group); len(wrong) > 0 {
			errs = append(errs, field.Invalid(path.Child("group"), group, strings.Join(wrong, ",")))
		}
	}
	return errs
}

func validateMigrationUpdate(m, old *migrationv1.StorageVersionMigration, subresource string) field.ErrorList {
	if subresource != "status" {
		return append(validateMigration(m),
			apivalidation.ValidateImmutableField(m.Spec, old.Spec, field.NewPath("spec"))...)
	}
	path := field.NewPath("status")
	revision, conditions := path.Child("resourceVersion"), path.Child("conditions")
	var errs field.ErrorList
	now, before := m.Status.ResourceVersion, old.Status.ResourceVersion
	if now != "" {
		if _, err := strconv.ParseUint(now, 10, 64); err != nil {
			errs = append(errs, field.Invalid(revision, now, "resource version is not well formed: "+now))
		}
	}
	errs = append(errs, metav1validation.ValidateConditions(m.Status.Conditions, conditions)...)
	if before != "" && before != now {
		errs = append(errs, field.Invalid(revision, now, "field is immutable"))
	}
	is := func(m *migrationv1.StorageVersionMigration, kind migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, string(kind))
	}
	succeeded, failed := is(m, migrationv1.MigrationSucceeded), is(m, migrationv1.MigrationFailed)
	if succeeded && failed {
		errs = append(errs,
			field.Invalid(conditions, m.Status.Conditions,
				"Both success and failed conditions cannot be true at the same time"))
	}
	if is(old, migrationv1.MigrationSucceeded) && !succeeded {
		errs = append(errs,
			field.Invalid(conditions, m.Status.Conditions, "Success condition cannot be set to false once it is true"))
	}
	if is(old, migrationv1.MigrationFailed) && !failed {
		errs = append(errs,
			field.Invalid(conditions, m.Status.Conditions, "Failed condition cannot be set to false once it is true"))
	}
	return errs
}

// storageVersionMigrationFunctions are the functions that storage_version_migration.txt names.
func storageVersionMigrationFunctions() rule.Functions {
	return rule.Functions{
		"migration": rule.Typed(validateMigration, validateMigrationUpdate),
	}
}
