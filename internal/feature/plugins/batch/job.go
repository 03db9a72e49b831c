package batch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/kinds/scheduling/v1alpha2"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// gangs looks up the groups of pods that are scheduled all or none.
type gangs struct{ groups *watchcache.Collection }

// Job keeps a Job from asking for another number of pods at a time while these are scheduled as a gang.
func Job(c plugin.Config) []plugin.Rule {
	g := gangs{c.View.Collection(ref.PodGroups.Prefix)}
	return []plugin.Rule{{Group: "batch", Plural: "jobs", Operations: plugin.Updates, Validate: g.check}}
}

func (g gangs) check(_ context.Context, a *admit.Attributes) error {
	if rule.Equivalent(catalog.At(a.Object, "spec")["parallelism"], catalog.At(a.Old, "spec")["parallelism"]) {
		return nil
	}
	if name := g.of(a); name != "" {
		return admit.Forbidden(a,
			fmt.Errorf("cannot change parallelism for a Job referencing gang-scheduled PodGroup %q", name))
	}
	return nil
}

// of returns the gang of a Job's pods, or "" if there is none: the group that the template names, or else one that the
// Job's controller has created.
func (g gangs) of(a *admit.Attributes) (name string) {
	s := g.groups.Snapshot()
	spec := catalog.At(a.Old, "spec", "template", "spec")
	if group := rule.As[corev1.PodSchedulingGroup](spec["schedulingGroup"]); group.PodGroupName != nil {
		if e := s.Get(a.Namespace, *group.PodGroupName); e != nil && gang(e) != nil {
			return e.Name
		}
		return ""
	}
	uid := types.UID(catalog.Text(catalog.At(a.Old, "metadata"), "uid"))
	s.Scan(a.Namespace, "", func(e *watchcache.Entry) bool {
		if group := gang(e); group != nil {
			if owner := metav1.GetControllerOfNoCopy(group); owner != nil && owner.UID == uid {
				name = e.Name
			}
		}
		return name == ""
	})
	return name
}

// gang returns the group of an entry, or nil if it is not a gang.
func gang(e *watchcache.Entry) *v1alpha2.PodGroup {
	group, err := plugin.Decode[v1alpha2.PodGroup](e)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	return group
}
