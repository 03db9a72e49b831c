package builtin

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/crd"
)

// Priorities of the groups among each other, from kube-apiserver's table of its own APIService objects.
const (
	priorityCore          = 18000
	priorityAPIExtensions = 16700
	priorityCoordination  = 16500
)

// kinds returns the table of the built-in kinds. Plural and short names, categories, storage prefixes and columns are
// written here because no published source has them: in Kubernetes they are code of each kind's registry.
//
// TODO: add Event of events.k8s.io/v1 when a resource can be another form of one in another group. The objects are those
// of core/v1 in the same place, with involvedObject, message, source, count and the timestamps under other names.
func kinds() []kind {
	return []kind{
		{
			version: "v1", kind: "Namespace", plural: "namespaces", short: []string{"ns"},
			clusterScoped: true, priority: priorityCore, status: true, noDeleteCollection: true,
			new: newOf[corev1.Namespace](),
			columns: columns(nameColumn(),
				catalog.Column{Name: "Status", Type: "string", Description: "The status of the namespace"},
				ageColumn()),
			rules: &catalog.Rules{
				ValidName:           validation.ValidateNamespaceName,
				Decode:              decode[corev1.Namespace],
				Default:             defaultNamespace,
				PrepareCreate:       prepareNamespaceCreate,
				PrepareUpdate:       prepareNamespaceUpdate,
				Validate:            judge(validateNamespace),
				ValidateUpdate:      judgeUpdate(validateNamespaceUpdate),
				PrepareDelete:       prepareNamespaceDelete,
				Encloses:            true,
				UnconditionalUpdate: true,
				FieldLabels:         map[string]func(catalog.Object) string{"status.phase": textAt("status", "phase")},
				Subresources:        []string{"finalize"},
				Cells:               namespaceCells,
			},
		},
		{
			version: "v1", kind: "ConfigMap", plural: "configmaps", short: []string{"cm"}, priority: priorityCore,
			new: newOf[corev1.ConfigMap](),
			columns: columns(nameColumn(),
				catalog.Column{Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"]},
				ageColumn()),
			rules: &catalog.Rules{
				ValidName:           validation.NameIsDNSSubdomain,
				Decode:              decode[corev1.ConfigMap],
				Validate:            judge(validateConfigMap),
				ValidateUpdate:      judgeUpdate(validateConfigMapUpdate),
				UnconditionalUpdate: true,
				Cells:               configMapCells,
			},
		},
		{
			version: "v1", kind: "Secret", plural: "secrets", priority: priorityCore,
			new: newOf[corev1.Secret](),
			columns: columns(nameColumn(),
				catalog.Column{Name: "Type", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["type"]},
				catalog.Column{Name: "Data", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["data"]},
				ageColumn()),
			rules: &catalog.Rules{
				ValidName:           validation.NameIsDNSSubdomain,
				Decode:              decode[corev1.Secret],
				Default:             defaultSecret,
				Validate:            judge(validateSecret),
				ValidateUpdate:      judgeUpdate(validateSecretUpdate),
				Warnings:            warnSecret,
				UnconditionalUpdate: true,
				FieldLabels:         map[string]func(catalog.Object) string{"type": textAt("type")},
				Cells:               secretCells,
			},
		},
		{
			version: "v1", kind: "Event", plural: "events", short: []string{"ev"}, priority: priorityCore,
			new:     newOf[corev1.Event](),
			columns: eventColumns(),
			rules: &catalog.Rules{
				//lint:ignore SA1019 kube's rule for event names, kept where kube keeps it
				ValidName:           path.ValidatePathSegmentName,
				Decode:              decode[corev1.Event],
				Validate:            judge(validateEvent),
				ValidateUpdate:      judgeUpdate(func(e, _ *corev1.Event, _ string) errorList { return validateEvent(e) }),
				UnconditionalUpdate: true,
				CreateOnUpdate:      true,
				TTL:                 time.Hour, // kube's --event-ttl
				Dependents:          catalog.NoDependents,
				FieldLabels:         eventFields(),
				Cells:               eventCells,
			},
		},
		{
			version: "v1", kind: "ServiceAccount", plural: "serviceaccounts", short: []string{"sa"}, priority: priorityCore,
			new:     newOf[corev1.ServiceAccount](),
			columns: columns(nameColumn(), ageColumn()),
			rules: &catalog.Rules{
				ValidName:           validation.ValidateServiceAccountName,
				Decode:              decode[corev1.ServiceAccount],
				PrepareCreate:       prepareServiceAccountCreate,
				PrepareUpdate:       prepareServiceAccountUpdate,
				Validate:            judge(func(sa *corev1.ServiceAccount) errorList { return checkFinalizers(sa) }),
				ValidateUpdate:      judgeUpdate(func(sa, _ *corev1.ServiceAccount, _ string) errorList { return checkFinalizers(sa) }),
				Warnings:            warnServiceAccount,
				UnconditionalUpdate: true,
				Cells:               nameAndAge,
			},
		},
		{
			group: coordinationv1.GroupName, version: "v1", kind: "Lease", plural: "leases", priority: priorityCoordination,
			new: newOf[coordinationv1.Lease](),
			columns: columns(nameColumn(),
				catalog.Column{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]},
				ageColumn()),
			rules: &catalog.Rules{
				ValidName:      validation.NameIsDNSSubdomain,
				Decode:         decode[coordinationv1.Lease],
				Validate:       judge(validateLease),
				ValidateUpdate: judgeUpdate(func(l, _ *coordinationv1.Lease, _ string) errorList { return validateLease(l) }),
				CreateOnUpdate: true,
				Cells:          leaseCells,
			},
		},
		{
			group: apiextensionsv1.GroupName, version: "v1", kind: "CustomResourceDefinition", plural: "customresourcedefinitions",
			short: []string{"crd", "crds"}, categories: []string{"api-extensions"},
			clusterScoped: true, priority: priorityAPIExtensions, status: true, generation: true,
			prefix:  "apiextensions.k8s.io/customresourcedefinitions",
			new:     newOf[apiextensionsv1.CustomResourceDefinition](),
			columns: columns(nameColumn(), createdColumn()),
			rules:   definitionRules(),
		},
	}
}

// definitionRules are those of package crd, printed like every kind that has no columns of its own.
func definitionRules() *catalog.Rules {
	rules := *crd.Rules()
	rules.Cells = nameAndCreation
	return &rules
}

func newOf[T any]() func() any { return func() any { return new(T) } }

func singular(kind string) string { return strings.ToLower(kind) }
