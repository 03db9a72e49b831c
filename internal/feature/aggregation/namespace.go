package aggregation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
)

// emptyTimeout bounds each request that deletes or counts the objects of another server in a namespace.
const emptyTimeout = 30 * time.Second

// empty deletes the objects of other servers in a namespace, and returns the remaining ones. A server that does not
// answer blocks the deletion only if its last discovery contains namespaced resources with the verbs list and delete;
// servers of computed resources, such as metrics, never do.
func (a *aggregator) empty(ctx context.Context, namespace string) (out control.Elsewhere) {
	t := a.table.Load()
	if t == nil {
		return out
	}
	var remotes []*remote
	for _, r := range *t {
		remotes = append(remotes, r)
	}
	slices.SortFunc(remotes, func(a, b *remote) int { return cmp.Compare(a.name, b.name) })
	var first sync.WaitGroup // a server that was never checked may be available
	for _, r := range remotes {
		if r.state.Load() == nil {
			first.Go(func() { a.await(ctx, r) })
		}
	}
	first.Wait()
	for _, r := range remotes {
		var s *state // of servers with such resources
		for _, resource := range r.documents.Load().resources {
			if !holds(&resource) {
				continue
			}
			if s == nil {
				s = a.await(ctx, r)
			}
			if !s.available() {
				version := r.version.Group + "/" + r.version.Version
				out.Unknown = append(out.Unknown,
					fmt.Errorf("%s: stale GroupVersion discovery: %s", version, version))
				break
			}
			held, err := a.emptyOf(ctx, r, &resource, namespace)
			if err != nil {
				out.Failures = append(out.Failures, err)
			} else if held.Objects > 0 {
				out.Left = append(out.Left, held)
			}
		}
	}
	return out
}

// holds reports whether a namespace may hold objects of a resource that have to be deleted with it.
func holds(r *apidiscoveryv2.APIResourceDiscovery) bool {
	return r.Scope == apidiscoveryv2.ScopeNamespace && slices.Contains(r.Verbs, "list") &&
		(slices.Contains(r.Verbs, "delete") || slices.Contains(r.Verbs, "deletecollection"))
}

// emptyOf deletes the objects of one resource, and counts the remaining ones.
func (a *aggregator) emptyOf(
	ctx context.Context, r *remote, resource *apidiscoveryv2.APIResourceDiscovery, namespace string,
) (control.Held, error) {
	held := control.Held{Resource: resource.Resource + "." + r.version.Group, Finalizers: map[string]int{}}
	at := r.path() + "/namespaces/" + namespace + "/" + resource.Resource
	list, err := a.list(ctx, r, at)
	if err != nil || len(list.Items) == 0 {
		return held, err
	}
	if slices.Contains(resource.Verbs, "deletecollection") {
		_, err = a.send(ctx, r, http.MethodDelete, at)
	} else {
		for _, one := range list.Items {
			if _, err = a.send(ctx, r, http.MethodDelete, at+"/"+one.Name); err != nil {
				break
			}
		}
	}
	if err != nil {
		return held, err
	}
	if list, err = a.list(ctx, r, at); err != nil {
		return held, err
	}
	for _, one := range list.Items {
		held.Objects++
		for _, f := range one.Finalizers {
			held.Finalizers[f]++
		}
	}
	return held, nil
}

func (a *aggregator) list(ctx context.Context, r *remote, at string) (*metav1.PartialObjectMetadataList, error) {
	body, err := a.send(ctx, r, http.MethodGet, at)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	return list, json.Unmarshal(body, list)
}

// send sends a request to the other server, as the namespace controller. NotFound is treated as empty. An error names
// the version and the path; clients see it in the namespace's conditions, so it does not show the server's address.
func (a *aggregator) send(ctx context.Context, r *remote, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	at := url.URL{Scheme: "https", Host: r.name, Path: path}
	out, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	resp, err := a.sendAs(out, r, control.ControllerUser("namespace-controller"))
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, method, path, withoutAddress(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInitial))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, method, path, withoutAddress(err))
	case resp.StatusCode == http.StatusNotFound:
		return []byte("{}"), nil
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, fmt.Errorf("%s: %s %s: %s", r.name, method, path, resp.Status)
	}
	return body, nil
}

// withoutAddress returns the reason of a failed connection without its addresses.
func withoutAddress(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
