package aggregation

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// leftoversOf is the annotation of an APIService by which an administrator confirms that its server has the objects of
// other services: "<namespace>/<service>", separated by commas.
const leftoversOf = "bowsprit.dev/leftovers-of"

// maxAdopted bounds the services in the annotation.
const maxAdopted = 20

// guards returns the checks of writes that decide which objects the server deletes.
func guards(h *part.Host) map[string]verb.Guard {
	annotation := func(ctx context.Context, c *verb.Call, obj, old object.Object) error {
		return guardAnnotation(ctx, h, c, obj, old)
	}
	return map[string]verb.Guard{
		ref.ConfigMaps.Resource:                  guardRecord,
		Resource.Resource + "." + Resource.Group: annotation,
	}
}

// guardRecord refuses records of leftovers that the server has not written: the server would delete the objects that
// they name.
func guardRecord(_ context.Context, c *verb.Call, obj, _ object.Object) error {
	name := object.String(obj, "metadata", "name")
	if c.InProcess || leftover.NamespaceOf(c.Namespace, name) == "" {
		return nil
	}
	return apierrors.NewForbidden(c.GroupResource(), name, errReserved)
}

// guardAnnotation requires the permission to delete all objects of an APIService's group for a new value of its
// annotation.
func guardAnnotation(ctx context.Context, h *part.Host, c *verb.Call, obj, old object.Object) error {
	value := object.String(obj, "metadata", "annotations", leftoversOf)
	if c.InProcess || value == "" || value == object.String(old, "metadata", "annotations", leftoversOf) {
		return nil
	}
	if adopted(value) == nil {
		return apierrors.NewInvalid(c.Kind().GroupKind(), object.String(obj, "metadata", "name"), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "annotations").Key(leftoversOf), value, errAdopts.Error()),
		})
	}
	if h.Authorizer == nil {
		return nil
	}
	return authz.Require(ctx, h.Authorizer, c.User, &request.Info{
		IsResource: true, APIPrefix: "apis", Verb: "deletecollection", Group: object.String(obj, "spec", "group"),
		Version: object.String(obj, "spec", "version"), Resource: "*",
	})
}

// adopted returns the services that an annotation names, nil if it is malformed.
func adopted(value string) []string {
	services := strings.Split(value, ",")
	if len(services) > maxAdopted {
		return nil
	}
	for i, one := range services {
		services[i] = strings.TrimSpace(one)
		namespace, name, ok := strings.Cut(services[i], "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil
		}
	}
	return services
}
