package aggregation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/feature/aggregation/leftover"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

// leftovers keeps requests away from objects of deleted namespaces that another server may still have.
type leftovers struct {
	host   *part.Host
	ledger *leftover.Ledger
}

// handler returns the handler of requests for an APIService. It refuses requests in a namespace with leftovers of the
// group, and adds a warning to lists of all namespaces.
func (l *leftovers) handler(r *remote, next front.Handler) front.Handler {
	return func(w http.ResponseWriter, req *http.Request, info *request.Info, u user.Info) {
		if info.IsResource {
			if err := l.refuse(req.Context(), info, u); err != nil {
				codec.WriteError(w, req, err)
				return
			}
			l.warn(req.Context(), r, info)
		}
		next(w, req, info, u)
	}
}

// refuse returns a 409 for a request in a namespace with leftovers.
func (l *leftovers) refuse(ctx context.Context, info *request.Info, u user.Info) error {
	if info.Namespace == "" {
		return nil
	}
	debts := l.ledger.Record(info.Namespace).Of(info.Group)
	if len(debts) == 0 || l.mayFinish(ctx, debts, info, u) {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Group: info.Group, Resource: info.Resource}, info.Name,
		fmt.Errorf("an earlier namespace %q was deleted while a server of the group %s did not answer, and the server may "+
			"still have its objects: requests of the group are possible here once they are deleted. The ConfigMap %s/%s "+
			"has the state", info.Namespace, info.Group, metav1.NamespaceSystem, leftover.Name(info.Namespace)))
}

// mayFinish reports whether a request is about an object that waits for its finalizers, by a user with the same
// permission in all namespaces: its controller has to finish, and nobody else may see it.
func (l *leftovers) mayFinish(ctx context.Context, debts []*leftover.Debt, info *request.Info, u user.Info) bool {
	if info.Name == "" || !slices.Contains([]string{"get", "update", "patch", "delete"}, info.Verb) {
		return false
	}
	held := slices.ContainsFunc(debts, func(d *leftover.Debt) bool {
		return slices.Contains(d.Held, info.Resource+"/"+info.Name)
	})
	if !held || l.host.Authorizer == nil {
		return false
	}
	everywhere := *info
	everywhere.Namespace = ""
	decision, err := l.host.Authorizer.Authorize(ctx, u, &everywhere)
	return err == nil && decision.Allowed()
}

// namedInWarning is the number of namespaces that a warning names.
const namedInWarning = 3

// warn adds a warning to a list or watch of all namespaces.
func (l *leftovers) warn(ctx context.Context, r *remote, info *request.Info) {
	if info.Namespace != "" || info.Verb != "list" && info.Verb != "watch" {
		return
	}
	namespaces := l.ledger.NamespacesOf(info.Group)
	if len(namespaces) == 0 || !namespaced(r, info.Resource) {
		return
	}
	request.Warn(ctx, fmt.Sprintf("the response may have objects of deleted namespaces: %s", firstOf(namespaces)))
}

// namespaced reports whether a server has namespaced objects of a resource.
func namespaced(r *remote, resource string) bool {
	return slices.ContainsFunc(r.documents.Load().resources, func(one apidiscoveryv2.APIResourceDiscovery) bool {
		return one.Resource == resource && one.Scope == apidiscoveryv2.ScopeNamespace
	})
}

// firstOf returns the first namespaces and the number of the others as text.
func firstOf(namespaces []string) string {
	const most = namedInWarning
	if len(namespaces) <= most {
		return strings.Join(namespaces, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(namespaces[:most], ", "), len(namespaces)-most)
}

var (
	errReserved = errors.New("only the server itself writes this ConfigMap; delete it to confirm that nothing is left " +
		"to clean")
	errAdopts = errors.New("is no list of services: use <namespace>/<service>, separated by commas, at most 20")
)
