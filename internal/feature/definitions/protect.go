package definitions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// mayDelete refuses the deletion of a protected definition with objects.
func (p *protection) mayDelete(ctx context.Context, c *verb.Call, obj object.Object) error {
	if object.Meta(obj)["deletionTimestamp"] != nil || !p.protects(obj, nil) {
		return nil
	}
	if _, err := p.view.Fresh(ctx); err != nil {
		return err
	}
	spec := object.Map(obj, "spec")
	prefix := object.String(spec, "group") + "/" + object.String(spec, "names", "plural")
	count := p.view.Collection(prefix).Snapshot().Len()
	if count == 0 {
		return nil
	}
	return apierrors.NewForbidden(c.GroupResource(), c.Name, fmt.Errorf("its %d objects would be deleted with it: delete "+
		"them first, or set the annotation %s=false to delete all", count, ProtectAnnotation))
}

// removed returns the check of an update that removes versions from spec.versions of a protected definition.
func (p *protection) removed(now, was state) []*catalog.Proof {
	var gone []string
	for i := range was.Spec.Versions {
		name := was.Spec.Versions[i].Name
		if !slices.ContainsFunc(now.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == name
		}) {
			gone = append(gone, name)
		}
	}
	return p.withoutVersions(now.object, was.object, gone, field.NewPath("spec", "versions"))
}

// forgotten returns the check of an update that removes versions from status.storedVersions of a protected definition.
func (p *protection) forgotten(obj, old object.Object) []*catalog.Proof {
	left := object.Strings(obj, "status", "storedVersions")
	gone := slices.DeleteFunc(object.Strings(old, "status", "storedVersions"), func(name string) bool {
		return slices.Contains(left, name)
	})
	return p.withoutVersions(obj, old, gone, field.NewPath("status", "storedVersions"))
}

// withoutVersions returns the check that no object is stored in a removed version of a protected definition.
func (p *protection) withoutVersions(obj, old object.Object, gone []string, path *field.Path) []*catalog.Proof {
	if len(gone) == 0 || !p.protects(obj, old) {
		return nil
	}
	counts := map[string]int{}
	spec := object.Map(obj, "spec")
	return []*catalog.Proof{{
		Key: "removed " + strings.Join(gone, " "), Path: path,
		Contents: catalog.GroupResource{
			Group: object.String(spec, "group"), Resource: object.String(spec, "names", "plural"),
		},
		Check: func(_ string, obj object.Object) error {
			_, version, _ := strings.Cut(object.String(obj, "apiVersion"), "/")
			counts[version]++
			return nil
		},
		Verdict: func(int, int) (errs field.ErrorList) {
			for _, name := range gone {
				if n := counts[name]; n > 0 {
					errs = append(errs, field.Forbidden(path, fmt.Sprintf("%d objects are stored in %s: migrate "+
						"them by a StorageVersionMigration, "+
						"or set the annotation %s=false", n, name, ProtectAnnotation)))
				}
			}
			return errs
		},
	}}
}
