package scheduling

import (
	"context"
	"fmt"
	"slices"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/kinds/scheduling/v1alpha2"
)

// PodGroup requires that the template that a new PodGroup names exists.
func PodGroup(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{Group: "scheduling.k8s.io", Plural: "podgroups", Operations: plugin.Creates,
		Validate: func(ctx context.Context, a *admit.Attributes) error {
			from := catalog.At(a.Object, "spec", "podGroupTemplateRef", "workload")
			if from == nil {
				return nil
			}
			name, template := catalog.Text(from, "workloadName"), catalog.Text(from, "podGroupTemplateName")
			w, err := plugin.Lookup[v1alpha2.Workload](ctx, c.View, ref.Workloads.Prefix, a.Namespace, name)
			switch {
			case err != nil:
				return err
			case w == nil:
				err = fmt.Errorf("PodGroup rejected: Workload %q not found", name)
			case w.DeletionTimestamp != nil:
				err = fmt.Errorf("PodGroup rejected: Workload %q is being deleted", name)
			case !slices.ContainsFunc(w.Spec.PodGroupTemplates,
				func(t v1alpha2.PodGroupTemplate) bool { return t.Name == template }):
				err = fmt.Errorf("PodGroup rejected: PodGroupTemplate %q not found in Workload %q", template, name)
			default:
				return nil
			}
			return admit.Forbidden(a, err)
		}}}
}
