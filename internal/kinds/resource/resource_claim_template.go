package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func resourceClaimTemplateKind() rule.Kind {
	return rule.Of[resourcev1.ResourceClaimTemplate](rule.Kind{
		Group: resourceV1, Kind: "ResourceClaimTemplate", Plural: "resourceclaimtemplates", ReturnsDeleted: true,
		Also: withOlder[resourcev1beta1.ResourceClaimTemplate](
			rule.OnDemand[resourcev1beta2.ResourceClaimTemplate](resourceV1beta2), defaultOlderTemplate),
		Convert: betweenVersions(upgradeTemplate, downgradeTemplate), OlderError: olderError,
		Form: olderTemplateForm(),
		Strategy: &catalog.Strategy{
			Cells: rule.NameAndAge, Default: defaultResourceClaimTemplate, ValidateIn: templatePrivileges,
			UnconditionalUpdate: true,
		},
	})
}

// resourceClaimTemplateFunctions are the functions that resource_claim_template.txt names.
func resourceClaimTemplateFunctions() rule.Functions {
	return rule.Functions{
		"sameTemplate": rule.SameInGo[resourcev1.ResourceClaimTemplateSpec],
		"templateMeta": pod.TemplateMeta,
	}
}
